//! Batches between threads: none is in two places, none is lost, and the receiver sees its links.
#![cfg(loom)]

#[path = "../src/shard"]
#[allow(dead_code)]
mod real {
    pub mod transfer;
}

mod size_class {
    pub const CLASSES: usize = 1;

    pub fn batch(_class: usize) -> u32 {
        2
    }

    pub fn size_of_class(_class: usize) -> usize {
        16
    }
}

use craton_base::atomic::model::{check, check_weakened};
use craton_base::loom::cell::UnsafeCell;
use craton_base::loom::thread;
use craton_slab::Chain;
use real::transfer::Transfer;
use std::sync::Arc;

const CLASS: usize = 1;
const OBJECTS: usize = 10;

/// The links as loom sees them.
#[repr(C)]
struct Object {
    words: std::cell::UnsafeCell<[usize; 2]>,
    link: UnsafeCell<u32>,
}

struct World {
    transfer: Transfer,
    objects: [Object; OBJECTS],
}

// SAFETY: loom runs one thread at a time, and sees races on the links.
unsafe impl Sync for World {}
// SAFETY: as above.
unsafe impl Send for World {}

impl World {
    fn new() -> Arc<Self> {
        let object = |_| Object { words: std::cell::UnsafeCell::new([0; 2]), link: UnsafeCell::new(0) };
        let world = Self { transfer: Transfer::EMPTY, objects: std::array::from_fn(object) };
        // Loom must see each slot.
        assert_eq!(world.transfer.bytes(), 0);
        Arc::new(world)
    }

    fn touch(&self, object: *mut u8) {
        let of = |o: &&Object| o.words.get().cast::<u8>() == object;
        let object = self.objects.iter().find(of).expect("an object of this world");
        // SAFETY: loom checks for exclusive access.
        object.link.with_mut(|n| unsafe { *n += 1 });
    }

    /// Returns how many stay with the caller.
    fn put(&self, n: usize) -> u32 {
        let mut chain = Chain::EMPTY;
        for object in &self.objects[2 * n..2 * n + 2] {
            let object = object.words.get().cast();
            self.touch(object);
            // SAFETY: the object is the caller's.
            unsafe { chain.push(object) };
        }
        match self.transfer.put(CLASS, chain) {
            Ok(()) => 0,
            Err(chain) => self.count(chain),
        }
    }

    /// Writes each object.
    fn count(&self, mut chain: Chain) -> u32 {
        let mut n = 0;
        while let Some(object) = chain.pop() {
            self.touch(object);
            n += 1;
        }
        n
    }

    fn take(&self) -> u32 {
        self.transfer.take(CLASS).map_or(0, |chain| self.count(chain))
    }

    fn drain(&self) -> u32 {
        let mut n = 0;
        self.transfer.drain(|_, chain| n += self.count(chain));
        n
    }
}

fn three_hands() {
    let world = World::new();
    let mut out = world.put(0);
    let other = {
        let world = Arc::clone(&world);
        thread::spawn(move || world.put(1) + world.take())
    };
    let drainer = {
        let world = Arc::clone(&world);
        thread::spawn(move || world.drain())
    };
    out += world.take() + world.put(2);
    out += other.join().unwrap() + drainer.join().unwrap();
    assert_eq!(out + world.drain(), 6, "each object is out once");
    assert_eq!(world.transfer.bytes(), 0);
}

#[test]
fn a_batch_is_in_one_hand_and_none_is_lost() {
    check(2, three_hands);
}

#[test]
fn two_that_want_the_last_slot_do_not_overwrite_each_other() {
    check(3, || {
        let world = World::new();
        let mut out = (0..3).map(|n| world.put(n)).sum::<u32>();
        let other = {
            let world = Arc::clone(&world);
            thread::spawn(move || world.put(3))
        };
        out += world.put(4);
        let theirs = other.join().unwrap();
        assert!(!world.transfer.has_room(CLASS));
        assert_eq!((out + theirs, world.drain()), (2, 8));
    });
}

#[test]
#[should_panic = "Causality violation"]
fn without_its_orderings_a_taker_does_not_see_the_links() {
    check_weakened(2, three_hands);
}
