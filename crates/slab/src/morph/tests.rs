extern crate std;
use super::*;
use craton_sim::Rng;
use std::vec::Vec;

const SLAB: PageId = PageId(6);

/// Old places of a slab of objects of these sizes, on one or two parts.
fn places(old: [Geometry; 2], new: Geometry) -> Vec<(usize, usize)> {
    let parts = (new.pages.0 / old[0].pages.0) as usize;
    let of = |part: usize| {
        let (g, start) = (old[part], part * old[0].pages.bytes().0);
        (0..usize::from(g.capacity)).map(move |i| (start + i * g.object as usize, g.object as usize))
    };
    (0..parts).flat_map(of).collect()
}

/// What new places there must be: none over another or a live object, and none missing where one
/// would fit.
fn check(entry: &Morph, live: &[(usize, usize)], new: Geometry) {
    let size = new.object as usize;
    let mut taken: Vec<(usize, usize)> = live.to_vec();
    taken.extend(entry.starts().map(|at| (at, size)));
    taken.sort_unstable();
    assert!(taken.windows(2).all(|w| w[0].0 + w[0].1 <= w[1].0), "an overlap in {taken:?}");
    assert!(taken.last().is_none_or(|last| last.0 + last.1 <= new.pages.bytes().0));
    assert!(!entry.has_overlap());
    let align = 1 << size.trailing_zeros();
    assert!(entry.starts().all(|at| at % align == 0 && entry.starts_at(at)));
    for at in (0..new.pages.bytes().0).step_by(16) {
        let around = taken.iter().find(|(start, len)| (*start..start + len).contains(&at));
        let place = around.filter(|around| !live.contains(around)).map(|(start, _)| *start as u32);
        assert_eq!(entry.new_around(at as u32), place);
        assert_eq!(entry.starts_at(at), place == Some(at as u32));
    }
}

/// The bytes between neighbours, of which nothing covers any.
fn longest_gap(entry: &Morph, live: &[(usize, usize)], new: Geometry) -> usize {
    let mut taken: Vec<(usize, usize)> = live.to_vec();
    taken.extend(entry.starts().map(|at| (at, new.object as usize)));
    taken.push((new.pages.bytes().0, 0));
    taken.sort_unstable();
    let mut end = 0;
    taken.iter().map(|(start, len)| start - core::mem::replace(&mut end, start + len)).max().unwrap_or(0)
}

#[test]
fn new_places_fill_all_gaps_whatever_lives_and_comes_back() {
    let mut rng = Rng::new(1);
    for (old, new) in [
        ([112, 112], 144),
        ([144, 144], 112),
        ([32, 32], 208),
        ([1360, 1360], 240),
        ([112, 144], 1488),
        ([160, 112], 1088),
        ([1088, 1088], 1488),
        ([3408, 3408], 3904),
        ([144, 112], 2336),
    ] {
        let (old, new) = (old.map(Geometry::of), Geometry::of(new));
        assert!(old.iter().all(|old| Morph::fits(*old, new)), "{old:?} to {new:?}");
        for percent in [0, 10, 50, 80, 100] {
            let mut entry = Morph::new(SLAB, old.map(|g| (g, 3)), (new, 4));
            let mut live: Vec<_> = places(old, new).into_iter().filter(|_| rng.below(100) < percent).collect();
            assert!(live.iter().all(|(at, _)| entry.set(*at) && !entry.set(*at)));
            let cut = entry.cut_gaps();
            assert_eq!((cut, entry.count_live().0), (entry.starts().count(), live.len()));
            // What a place's start is rounded to may be lost at each end of a gap.
            let longest = new.object as usize + 2 * (new.pages.bytes().0 / STARTS);
            let align = 1 << new.object.trailing_zeros();
            while !live.is_empty() {
                check(&entry, &live, new);
                if align <= 16 {
                    assert!(longest_gap(&entry, &live, new) < longest);
                }
                let (at, len) = live.swap_remove(rng.below(live.len() as u64) as usize);
                assert_eq!(entry.clear(at), Some(len as u32));
                assert_eq!(entry.clear(at), None);
                let before = entry.starts().count();
                let mut cut = 0;
                entry.cut_around(at, len as u32, |_| cut += 1);
                assert_eq!(entry.starts().count(), before + cut);
            }
        }
    }
}

#[test]
fn a_slab_settles_when_all_places_off_the_grid_are_back() {
    let (old, new) = (Geometry::of(112), Geometry::of(1488));
    let mut entry = Morph::new(SLAB, [(old, 3), (old, 3)], (new, 4));
    // In front of the second object five places fit, one more than on the grid; behind it five on
    // the grid.
    assert!(entry.set(0) && entry.set(8192));
    assert_eq!(entry.cut_gaps(), 10);
    for at in [0, 8192] {
        assert_eq!(entry.clear(at), Some(112));
        entry.cut_around(at, 112, |_| panic!("there is no gap of 1488 bytes"));
    }
    let mut all: Vec<usize> = entry.starts().filter(|at| at % 1488 != 0).collect();
    assert_eq!(all.len(), 5);
    while !all.is_empty() {
        assert!(!entry.is_regular());
        let at = all.remove(0);
        entry.close(at);
        entry.cut_grid(at, at + 1488, |grid| assert_eq!(grid % 1488, 0));
        check(&entry, &[], new);
    }
    assert!(entry.is_regular());
    assert_eq!(entry.starts().count(), new.capacity.into());
}
