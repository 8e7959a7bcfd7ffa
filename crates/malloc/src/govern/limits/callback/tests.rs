use super::*;
use core::sync::atomic::AtomicU64;

struct Seen {
    callback: Callback,
    calls: AtomicU64,
    limit: AtomicUsize,
}

/// # Safety
/// `arg` is a [`Seen`].
unsafe extern "C" fn called(arg: *mut c_void, limit: usize, used: usize) {
    // SAFETY: by the contract.
    let seen = unsafe { &*arg.cast::<Seen>() };
    seen.calls.fetch_add(1, Relaxed);
    seen.limit.store(limit, Relaxed);
    assert_eq!(used, limit + 1);
    seen.callback.call(1, 2);
}

fn seen() -> Seen {
    Seen { callback: Callback::new(), calls: AtomicU64::new(0), limit: AtomicUsize::new(0) }
}

fn set(seen: &Seen, function: Option<LimitCallback>) {
    // SAFETY: the argument outlives its use.
    unsafe { seen.callback.set(function, core::ptr::from_ref(seen).cast_mut().cast()) };
}

#[test]
fn the_function_is_called_with_its_argument_and_never_from_within_itself() {
    let seen = seen();
    seen.callback.call(10, 11);
    set(&seen, Some(called));
    seen.callback.call(10, 11);
    seen.callback.call(20, 21);
    assert_eq!((seen.calls.load(Relaxed), seen.limit.load(Relaxed)), (2, 20));
    set(&seen, None);
    seen.callback.call(30, 31);
    assert_eq!(seen.calls.load(Relaxed), 2);
}

#[test]
fn while_another_thread_is_in_it_the_function_is_not_called() {
    let seen = seen();
    set(&seen, Some(called));
    seen.callback.caller.store(1, Relaxed);
    seen.callback.call(10, 11);
    assert_eq!(seen.calls.load(Relaxed), 0);
    seen.callback.forked();
    seen.callback.call(10, 11);
    assert_eq!(seen.calls.load(Relaxed), 1);
    let own = thread::own_number();
    seen.callback.caller.store(own, Relaxed);
    seen.callback.forked();
    assert_eq!(seen.callback.caller.load(Relaxed), own, "the calling thread may have forked in it");
}
