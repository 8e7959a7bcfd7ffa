use super::*;
use core::sync::atomic::AtomicU32;

#[test]
fn a_hidden_thread_runs_and_can_be_waited_for() {
    static RAN: AtomicU32 = AtomicU32::new(0);
    let thread = with_signals_blocked(|| Hidden::start(|| RAN.store(1 + u32::from(is_main()), Relaxed)));
    let number = thread.expect("the system has threads").number();
    // SAFETY: joined once.
    unsafe { Hidden::from_number(number).join() };
    assert_eq!(RAN.load(Relaxed), 1, "it ran, and is not the main one");
}

#[test]
fn signals_that_were_let_through_are_let_through_again() {
    let blocked = || {
        // SAFETY: zeros are a valid set, which the call fills.
        unsafe {
            let mut set: libc::sigset_t = core::mem::zeroed();
            libc::pthread_sigmask(libc::SIG_SETMASK, core::ptr::null(), &mut set);
            libc::sigismember(&set, libc::SIGTERM)
        }
    };
    assert_eq!((with_signals_blocked(blocked), blocked()), (1, 0));
}
