use super::*;
extern crate std;
use core::cell::Cell;
use std::vec::Vec;

#[test]
fn each_eighth_has_its_list_and_complete_and_full_slabs_are_told_apart() {
    for capacity in 1..=MOST {
        let lists = Lists::<u8>::new(capacity);
        let eighth = |used: u16| usize::from(used) * EIGHTHS / usize::from(capacity);
        let off = |used: u16| lists.list_of(used) - eighth(used) - 1;
        let most_off = usize::from(capacity > 512);
        assert!((1..capacity).all(|used| off(used) <= most_off && lists.list_of(used) < FULL), "{capacity}");
        assert!((1..=capacity).all(|used| lists.list_of(used - 1) <= lists.list_of(used)), "{capacity}");
        assert_eq!((lists.list_of(0), lists.list_of(capacity)), (COMPLETE, FULL));
    }
}

struct Numbers([Cell<(Option<u8>, Option<u8>)>; 8]);

impl Links for Numbers {
    type Slab = u8;
    fn next(&self, slab: u8) -> Option<u8> {
        self.0[slab as usize].get().0
    }
    fn prev(&self, slab: u8) -> Option<u8> {
        self.0[slab as usize].get().1
    }
    fn set_next(&self, slab: u8, to: Option<u8>) {
        self.0[slab as usize].set((to, self.prev(slab)));
    }
    fn set_prev(&self, slab: u8, to: Option<u8>) {
        self.0[slab as usize].set((self.next(slab), to));
    }
}

#[test]
fn the_last_on_a_list_is_its_first_and_any_can_leave() {
    let links = Numbers(core::array::from_fn(|_| Cell::new((None, None))));
    for gone in 0..5 {
        let mut lists = Lists::new(16);
        (0..5).for_each(|slab| lists.push(slab, 3, &links));
        lists.push(7, COMPLETE, &links);
        assert_eq!((lists.fullest(), lists.list(COMPLETE).first()), (Some(4), Some(7)));
        lists.unlink(gone, 3, &links);
        let left: Vec<u8> = lists.list(3).iter(&links).collect();
        assert_eq!(left, (0..5).rev().filter(|slab| *slab != gone).collect::<Vec<_>>());
        left.iter().for_each(|slab| lists.unlink(*slab, 3, &links));
        assert_eq!((lists.fullest(), lists.is_filled(3)), (Some(7), false));
    }
}

#[test]
fn each_on_a_list_comes_first_in_turn() {
    let links = Numbers(core::array::from_fn(|_| Cell::new((None, None))));
    let mut lists = Lists::new(16);
    assert_eq!(lists.pass(3, &links), None);
    lists.push(0, 3, &links);
    assert_eq!((lists.pass(3, &links), lists.pass(3, &links)), (Some(0), Some(0)));
    (1..4).for_each(|slab| lists.push(slab, 3, &links));
    let turns: Vec<_> = (0..6).filter_map(|_| lists.pass(3, &links)).collect();
    assert_eq!(turns, [3, 2, 1, 0, 3, 2]);
    for gone in [3, 2] {
        lists.unlink(gone, 3, &links);
    }
    assert_eq!(lists.list(3).iter(&links).collect::<Vec<_>>(), [1, 0]);
    assert_eq!((lists.pass(3, &links), lists.fullest()), (Some(1), Some(0)));
}
