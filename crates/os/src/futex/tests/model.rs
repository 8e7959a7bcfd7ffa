//! `futex` in loom's models: a sleeper tests the word under the wakers' lock. No time-outs.

extern crate std;

use craton_base::atomic::{AtomicU32, AtomicU64, Ordering};
use craton_base::loom::sync::{Condvar, Mutex};
use craton_base::loom::{self};
use std::collections::HashMap;
use std::sync::Arc;

loom::lazy_static! {
    static ref SLEEPERS: Mutex<HashMap<usize, Arc<Condvar>>> = Mutex::new(HashMap::new());
}

fn place<T>(word: &T) -> usize {
    core::ptr::from_ref(word) as usize
}

pub(crate) fn wait(word: &AtomicU32, value: u32, _time: *const libc::timespec) {
    let mut sleepers = SLEEPERS.lock().expect("models end with the first panic");
    // ORDERING: pairs with nothing but the lock; the kernel's load is as strong.
    if word.load(Ordering::Acquire) == value {
        let bed = Arc::clone(sleepers.entry(place(word)).or_insert_with(|| Arc::new(Condvar::new())));
        drop(bed.wait(sleepers));
    }
}

pub(crate) fn wake(word: &AtomicU32, most: u32) {
    let sleepers = SLEEPERS.lock().expect("models end with the first panic");
    if let Some(bed) = sleepers.get(&place(word)) {
        if most == 1 { bed.notify_one() } else { bed.notify_all() }
    }
}

pub(crate) fn wait_half(word: &AtomicU64, value: u64, _at_most_ns: Option<i64>) -> bool {
    let mut sleepers = SLEEPERS.lock().expect("models end with the first panic");
    // ORDERING: as in `wait`.
    if word.load(Ordering::Acquire) == value {
        let bed = Arc::clone(sleepers.entry(place(word)).or_insert_with(|| Arc::new(Condvar::new())));
        drop(bed.wait(sleepers));
    }
    false
}

pub(crate) fn wake_half(word: &AtomicU64) {
    let sleepers = SLEEPERS.lock().expect("models end with the first panic");
    if let Some(bed) = sleepers.get(&place(word)) {
        bed.notify_one();
    }
}
