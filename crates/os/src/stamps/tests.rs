extern crate std;
use super::*;
use std::sync::Mutex;
use std::thread;
use std::vec::Vec;

fn drawn(stamps: &Stamps) -> Vec<u64> {
    let list = Mutex::new(Vec::new());
    let draw = || {
        for _ in 0..20_000 {
            let mut list = list.lock().unwrap();
            list.push(stamps.next());
        }
    };
    thread::scope(|scope| {
        scope.spawn(draw);
        scope.spawn(draw);
    });
    list.into_inner().unwrap()
}

#[test]
fn stamps_grow_from_one_holder_of_a_lock_to_the_next() {
    for stamps in [Stamps::detect(), Stamps::counter()] {
        assert!(drawn(&stamps).windows(2).all(|pair| pair[0] < pair[1]), "{stamps:?}");
    }
}

#[test]
fn the_counter_begins_at_one() {
    let stamps = Stamps::counter();
    assert!(!stamps.is_clock());
    assert_eq!([stamps.next(), stamps.next()], [1, 2]);
}
