extern crate std;
use super::*;
use std::sync::atomic::AtomicU32;

fn in_child(f: impl FnOnce()) -> i32 {
    let mut status = 0;
    // SAFETY: the child touches its copies, and leaves without destructors.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::close(libc::STDERR_FILENO);
            f();
            libc::_exit(7);
        }
        assert_eq!(libc::waitpid(child, &mut status, 0), child);
    }
    status
}

#[test]
fn a_thread_that_waits_for_itself_is_ended_and_does_not_hang() {
    let status = in_child(|| {
        let lock = Mutex::new(0);
        let _held = lock.lock();
        let _again = lock.lock();
    });
    assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGABRT, "status {status:#x}");
}

#[test]
fn a_fork_in_the_middle_takes_the_lock_again_and_leaves_it_held() {
    let lock = Mutex::new(0);
    let held = lock.lock();
    assert!(lock.is_own());
    lock.lock_for_fork(true);
    let status = in_child(|| {
        // SAFETY: a copy of the thread that holds it.
        unsafe { lock.release_after_fork() };
        assert!(lock.is_own());
    });
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 7, "status {status:#x}");
    // SAFETY: taken above.
    unsafe { lock.release_after_fork() };
    assert!(lock.is_own(), "the interrupted holder still has it");
    drop(held);
    assert!(!lock.is_own());
    lock.lock_for_fork(true);
    // SAFETY: as above.
    unsafe { lock.release_after_fork() };
    assert!(!lock.is_own());
    drop(lock.lock());
}

#[test]
fn a_thread_is_no_holder_of_what_another_holds() {
    let (lock, waiters) = (Mutex::new(0), AtomicU32::new(0));
    std::thread::scope(|scope| {
        let held = lock.lock();
        for _ in 0..4 {
            scope.spawn(|| {
                assert!(!lock.is_own());
                waiters.fetch_add(1, Ordering::Relaxed);
                *lock.lock() += 1;
            });
        }
        while waiters.load(Ordering::Relaxed) < 4 {
            std::thread::yield_now();
        }
        drop(held);
    });
    assert_eq!(*lock.lock(), 4);
}
