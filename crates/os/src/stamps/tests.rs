extern crate std;
use super::*;
use std::sync::Mutex;
use std::thread;
use std::vec::Vec;

/// Readings in the order in which two threads hold a lock.
fn read(clock: fn() -> u64) -> Vec<u64> {
    let list = Mutex::new(Vec::new());
    let read = || {
        for _ in 0..20_000 {
            let mut list = list.lock().unwrap();
            list.push(clock());
        }
    };
    thread::scope(|scope| {
        scope.spawn(read);
        scope.spawn(read);
    });
    list.into_inner().unwrap()
}

#[test]
fn readings_grow_from_one_holder_of_a_lock_to_the_next() {
    // Not every machine has one.
    let Some(clock) = stamp_clock() else { return };
    assert!(read(clock).windows(2).all(|pair| pair[0] < pair[1]));
}
