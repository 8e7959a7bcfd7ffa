use super::*;
use core::sync::atomic::AtomicBool;

static HELPER: HelperThread = HelperThread::new();
static RAN: AtomicU32 = AtomicU32::new(0);
static SLEPT: AtomicBool = AtomicBool::new(false);

fn run() {
    RAN.fetch_add(1, Relaxed);
    SLEPT.store(HELPER.sleep(None), Relaxed);
}

#[test]
fn a_thread_runs_sleeps_until_it_is_told_to_end_and_can_be_started_again() {
    for n in 1..=2 {
        assert!(HELPER.start(run) && !HELPER.is_rung());
        SLEPT.store(false, Relaxed);
        HELPER.ring();
        assert!(HELPER.join(), "it is this process's");
        assert_eq!((RAN.load(Relaxed), SLEPT.load(Relaxed)), (n, true));
    }
}

#[test]
fn a_sleep_ends_with_its_time_or_a_nudge() {
    let helper = HelperThread::new();
    assert!(!helper.sleep(Some(1_000_000)), "nothing told it to end");
    helper.nudge();
    assert!(!helper.sleep(None));
    helper.ring();
    assert!(helper.sleep(None) && helper.sleep(Some(u64::MAX)) && helper.is_rung());
}

#[test]
fn a_process_that_never_started_it_does_not_wait_for_it() {
    assert!(!HelperThread::new().join());
}

#[test]
fn another_process_nudges_by_a_byte() {
    let helper = HelperThread::new();
    // SAFETY: another process writes this byte of the bell so.
    unsafe { HelperThread::nudge_at(&raw const helper).cast_mut().write_volatile(1) };
    assert!(!helper.sleep(None), "at once");
}
