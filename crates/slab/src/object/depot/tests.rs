use super::*;
use crate::object::BufferPages;
use core::ptr;
use craton_base::PAGE_SIZE;
extern crate std;
use std::vec::Vec;

fn with_pages(n: usize, test: impl FnOnce(&mut BufferPages)) {
    let mut memory = std::vec![0u8; (n + 1) * PAGE_SIZE];
    let mut map = std::vec![0; n.div_ceil(64)];
    // SAFETY: the memory outlives the supplier.
    let mut pages = unsafe { BufferPages::new(memory.as_mut_ptr(), memory.len(), &mut map) };
    test(&mut pages);
    assert_eq!(pages.used(), 0, "pages are lost");
}

fn objects(n: usize) -> Vec<*mut u8> {
    (1..=n).map(|i| (i * 16) as *mut u8).collect()
}

fn empty_for_good(depot: &mut Depot, pages: &mut BufferPages) -> usize {
    let mut found = 0;
    while let Some(mut magazine) = depot.get_any() {
        found += core::iter::from_fn(|| magazine.pop()).count();
        // SAFETY: this depot's.
        unsafe { depot.drop_empty(magazine, pages) };
    }
    // SAFETY: the same supplier.
    unsafe { depot.reap_empty(true, pages) };
    depot.check().unwrap();
    found
}

#[test]
fn rounds_come_back_as_they_were_stored_whatever_the_sizes() {
    with_pages(40, |pages| {
        let mut depot = Depot::new(64);
        let all = objects(1000);
        let mut stored = 0;
        // SAFETY: the same supplier.
        unsafe {
            for some in all.chunks(37) {
                stored += depot.store(some, pages);
                depot.check().unwrap();
            }
            assert_eq!(stored, all.len());
            assert_eq!(depot.store(&[], pages), 0);
            assert_eq!(depot.stats().objects, 1000);
            let mut back = Vec::new();
            let mut into = [ptr::null_mut(); 9];
            loop {
                let n = depot.fetch(&mut into, pages);
                depot.check().unwrap();
                back.extend_from_slice(&into[..n]);
                if n == 0 {
                    break;
                }
            }
            back.sort_unstable();
            assert_eq!(back, all);
            assert_eq!(depot.fetch(&mut [], pages), 0);
        }
        assert_eq!((depot.stats().full, depot.stats().objects), (0, 0));
        assert!(depot.stats().empty > 0);
        assert_eq!(empty_for_good(&mut depot, pages), 0);
    });
}

#[test]
fn what_was_stored_last_is_fetched_first_and_in_its_order() {
    with_pages(4, |pages| {
        let mut depot = Depot::new(64);
        let all = objects(40);
        let mut into = [ptr::null_mut(); 30];
        // SAFETY: the same supplier.
        unsafe {
            // Three magazines of 14, 14 and 12 rounds.
            assert_eq!((depot.store(&all, pages), depot.stats().full), (40, 3));
            assert_eq!(depot.fetch(&mut into, pages), 30);
            assert_eq!(into[..], all[10..]);
            assert_eq!(depot.fetch(&mut into, pages), 10);
            assert_eq!(into[..10], all[..10]);
        }
        assert_eq!(empty_for_good(&mut depot, pages), 0);
    });
}

#[test]
fn magazines_are_stacks_that_know_when_they_are_full() {
    with_pages(2, |pages| {
        let mut depot = Depot::new(64);
        // SAFETY: the same supplier.
        let mut magazine = unsafe { depot.get_empty(pages) }.unwrap();
        let all = objects(magazine.capacity());
        assert_eq!((magazine.len(), all.len(), magazine.pop()), (0, depot.rounds(), None));
        assert!(all.iter().all(|round| magazine.push(*round)));
        assert!(!magazine.push(16 as *mut u8) && magazine.as_slice() == all);
        depot.put_full(magazine);
        let mut magazine = depot.get_full().unwrap();
        assert_eq!(core::iter::from_fn(|| magazine.pop()).count(), all.len());
        // SAFETY: this depot's.
        unsafe { depot.put_empty(magazine, pages) };
        assert_eq!((depot.stats().empty, depot.get_full().is_none()), (1, true));
        assert_eq!(empty_for_good(&mut depot, pages), 0);
    });
}

#[test]
fn magazines_grow_while_the_lock_is_contended_and_those_of_a_former_size_go() {
    with_pages(20, |pages| {
        let mut depot = Depot::new(64);
        let (mut now, mut sizes) = (0, std::vec![depot.rounds()]);
        // SAFETY: the same supplier.
        let small = unsafe { depot.get_empty(pages) }.unwrap();
        depot.tick(now);
        for _ in 0..6 {
            (0..4).for_each(|_| depot.count_contended());
            now += Depot::INTERVAL_NS;
            assert!(depot.tick(now) && !depot.tick(now + 1));
            sizes.push(depot.rounds());
        }
        assert_eq!(sizes, [14, 30, 62, 126, 126, 126, 126]);
        assert_eq!((depot.stats().contended, Depot::MOST_ROUNDS), (24, 126));
        // SAFETY: this depot's.
        unsafe { depot.put_empty(small, pages) };
        assert_eq!((depot.stats().empty, depot.bytes()), (0, 0));
        let mut quiet = Depot::new(1 << 20);
        assert_eq!(quiet.rounds(), 6);
        (0..100).for_each(|_| quiet.count_contended());
        quiet.tick(0);
        quiet.tick(Depot::INTERVAL_NS);
        assert_eq!(quiet.rounds(), 6, "magazines of large objects stay small");
    });
}

#[test]
fn little_contention_grows_nothing_and_is_forgotten_with_its_interval() {
    let mut depot = Depot::new(64);
    depot.tick(0);
    for interval in 1..10 {
        (0..3).for_each(|_| depot.count_contended());
        depot.tick(interval * Depot::INTERVAL_NS);
    }
    assert_eq!(depot.rounds(), 14);
}

#[test]
fn what_lay_unused_for_an_interval_is_idle() {
    with_pages(20, |pages| {
        let mut depot = Depot::new(64);
        let all = objects(14 * 5);
        depot.tick(1);
        // SAFETY: the same supplier.
        unsafe {
            all.chunks(14).for_each(|rounds| assert_eq!(depot.store(rounds, pages), 14));
            let mut into = [ptr::null_mut(); 14];
            assert!(depot.tick(1 + Depot::INTERVAL_NS) && depot.get_idle().is_none());
            // Two of the five are needed.
            assert_eq!((depot.fetch(&mut into, pages), depot.fetch(&mut into, pages)), (14, 14));
            (0..2).for_each(|_| assert_eq!(depot.store(&into, pages), 14));
            assert!(depot.tick(1 + 2 * Depot::INTERVAL_NS));
            let idle: Vec<Magazine> = core::iter::from_fn(|| depot.get_idle()).collect();
            assert_eq!((idle.len(), depot.stats().full), (3, 2));
            for mut magazine in idle {
                while magazine.pop().is_some() {}
                depot.drop_empty(magazine, pages);
            }
        }
        assert_eq!(empty_for_good(&mut depot, pages), 28);
    });
}

#[test]
fn an_interval_of_nothing_makes_all_idle_and_one_without_end_none() {
    with_pages(20, |pages| {
        for (interval, idle) in [(0, 3), (u64::MAX, 0)] {
            let mut depot = Depot::new(64);
            depot.set_interval_ns(interval);
            // SAFETY: the same supplier.
            (0..3).for_each(|_| assert_eq!(unsafe { depot.store(&objects(14), pages) }, 14));
            assert_eq!(depot.tick(5), interval == 0);
            depot.tick(u64::MAX - 1);
            let mut found = 0;
            while let Some(mut magazine) = depot.get_idle() {
                while magazine.pop().is_some() {}
                // SAFETY: this depot's.
                unsafe { depot.drop_empty(magazine, pages) };
                found += 1;
            }
            assert_eq!(found, idle);
            empty_for_good(&mut depot, pages);
        }
    });
}

#[test]
fn without_memory_for_a_magazine_nothing_is_stored() {
    with_pages(0, |pages| {
        let mut depot = Depot::new(64);
        // SAFETY: the same supplier.
        assert_eq!(unsafe { depot.store(&objects(3), pages) }, 0);
        assert_eq!(depot.stats(), DepotStats { rounds: 14, ..DepotStats::default() });
    });
}
