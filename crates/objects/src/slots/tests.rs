use super::*;
use std::collections::HashSet;
use std::vec::Vec;

struct Few;

// SAFETY: numbers.
unsafe impl Kind for Few {
    type Locked = u64;
    type Shared = AtomicUsize;
    const MOST: usize = 5;
    const STEP: usize = 4;
    const UNKNOWN: Misuse = Misuse::NoCache;
    const GONE: Misuse = Misuse::CacheDestroyed;
}

fn begin(slots: &Slots<Few>, bits: usize) -> Option<usize> {
    let id = slots.alloc(&mut slots.lock_free())?;
    Some(slots.publish(id, bits))
}

fn end(slots: &Slots<Few>, handle: usize) {
    let (id, _) = slots.find(handle).unwrap();
    slots.retire(id);
    slots.free(&mut slots.lock_free(), id);
}

#[test]
fn k5_a_handle_is_found_exactly_while_its_tenant_lives() {
    let slots = Slots::<Few>::new();
    assert_eq!(slots.find(0).err(), Some(Misuse::NoCache), "an empty table");
    let (a, b) = (begin(&slots, 0).unwrap(), begin(&slots, 3).unwrap());
    assert_eq!((a % 4, b % 4), (0, 3), "the kind's bits are in the handle");
    assert_eq!((slots.find(a).unwrap().0, slots.find(b).unwrap().0), (0, 1));
    for bad in [0, 1, 4096, a + (1 << 40), a ^ (1 << 63), usize::MAX, a + 2 * SLOT_ALIGN] {
        assert_eq!(slots.find(bad).err(), Some(Misuse::NoCache), "{bad:#x}");
    }
    assert_eq!(slots.find(a + 4).err(), Some(Misuse::CacheDestroyed), "another generation");
    end(&slots, a);
    assert_eq!(slots.find(a).err(), Some(Misuse::CacheDestroyed));
    assert_eq!(slots.lock(a).err(), Some(Misuse::CacheDestroyed));
    assert!(slots.lock_id(0).is_none() && slots.lock_id(1).is_some());
    assert_eq!(slots.living().map(|(id, _)| id).collect::<Vec<_>>(), [1]);
}

impl<K: Kind> core::fmt::Debug for Slot<K> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "slot {:#x}", self.handle())
    }
}

#[test]
fn k6_tenants_of_one_slot_have_handles_of_their_own_until_the_generation_wraps() {
    let slots = Slots::<Few>::new();
    let mut seen = HashSet::new();
    for turn in 0..SLOT_ALIGN / Few::STEP {
        let handle = begin(&slots, 1).unwrap();
        assert!(seen.insert(handle), "turn {turn}");
        end(&slots, handle);
    }
    assert!(seen.contains(&begin(&slots, 1).unwrap()), "after 1024 tenants handles come again");
    assert_eq!(slots.used(), 1, "one slot served all of them");
}

#[test]
fn a_full_table_refuses_and_serves_again_after_one_has_gone() {
    let slots = Slots::<Few>::new();
    let all: Vec<_> = (0..Few::MOST).map(|_| begin(&slots, 0).unwrap()).collect();
    assert_eq!(begin(&slots, 0), None);
    assert_eq!(slots.living().count(), Few::MOST);
    end(&slots, all[3]);
    let next = begin(&slots, 0).unwrap();
    assert_eq!((slots.find(next).unwrap().0, begin(&slots, 0)), (3, None));
}

#[test]
fn what_was_locked_by_handle_is_refused_when_its_tenant_went_meanwhile() {
    let slots = Slots::<Few>::new();
    let handle = begin(&slots, 0).unwrap();
    *slots.lock(handle).unwrap().2 += 7;
    let late = slots.get(0).lock(handle, |lock| {
        end(&slots, handle);
        lock.lock()
    });
    assert_eq!(late.err(), Some(Misuse::CacheDestroyed));
    assert_eq!(*slots.get(0).locked.lock(), 7, "the next tenant sets the slot up");
}

#[test]
fn the_locks_held_for_a_fork_come_free_again() {
    let slots = Slots::<Few>::new();
    let handle = begin(&slots, 0).unwrap();
    slots.lock_for_fork(false);
    assert!(slots.get(0).locked.try_lock().is_none() && slots.free.try_lock().is_none());
    // SAFETY: taken just now.
    unsafe { slots.release_after_fork() };
    assert!(slots.lock(handle).is_ok() && slots.free.try_lock().is_some());
}
