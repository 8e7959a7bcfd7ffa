extern crate std;
use super::*;
use crate::geometry::Geometry;
use craton_sim::Rng;
use std::vec::Vec;

const FIRST: PageId = PageId(64);

struct World {
    morphs: Morphs,
    records: Table<SlabRecord>,
    new: Geometry,
}

fn world(old: &[Geometry], new: Geometry) -> World {
    // SAFETY: zeros are valid entries.
    let entries: Vec<Morph> = (0..40).map(|_| unsafe { core::mem::zeroed() }).collect();
    let records: Vec<SlabRecord> = (0..128).map(|_| SlabRecord::default()).collect();
    let records = Table::from_slice(records.leak());
    let mut morphs = Morphs::new(Table::from_slice(entries.leak()));
    let mut page = FIRST;
    for g in old {
        let old = Old { object: g.object, places: g.capacity, origin: page, from: 3 };
        for _ in 0..g.pages.0 {
            let slab = PageId(FIRST.0 + (page.0 - FIRST.0) / new.pages.0 * new.pages.0);
            morphs.add_page(page, PageRange::new(slab, new.pages), (new.object, 4), old, &records);
            page = PageId(page.0 + 1);
        }
    }
    World { morphs, records, new }
}

impl World {
    fn slab(&self) -> Mixed<'_, Table<SlabRecord>> {
        self.morphs.slab(FIRST, &self.records)
    }

    fn check(&self, live: &[(u32, u32)]) {
        let (slab, size) = (self.slab(), self.new.object);
        let mut taken: Vec<(u32, u32)> = live.to_vec();
        taken.extend(slab.starts().map(|at| (at, size)));
        taken.sort_unstable();
        assert!(taken.windows(2).all(|w| w[0].0 + w[0].1 <= w[1].0), "an overlap in {taken:?}");
        assert!(taken.last().is_none_or(|last| last.0 + last.1 <= slab.bytes));
        assert!(!slab.has_overlap() && slab.is_count_right());
        let align = 1 << size.trailing_zeros();
        assert!(slab.starts().all(|at| at % align == 0 && slab.starts_at(at)));
        for at in (0..slab.bytes).step_by(16) {
            let around = taken.iter().find(|(start, len)| (*start..start + len).contains(&at));
            let place = around.filter(|around| !live.contains(around)).map(|(start, _)| *start);
            assert_eq!(slab.new_around(at), place);
            assert_eq!(slab.starts_at(at), place == Some(at));
            let is_old =
                matches!(slab.look(at), Place::Old { class: 3, offset } if offset as u32 == at - around.unwrap().0);
            assert_eq!(is_old, around.is_some() && place.is_none());
        }
        // The gap that rounds a place's start up may be lost.
        taken.push((slab.bytes, 0));
        let mut end = 0;
        let gaps = taken.iter().map(|(start, len)| start - core::mem::replace(&mut end, start + len));
        assert!(gaps.max() < Some(size + align), "room for one more");
    }
}

fn of(sizes: &[usize]) -> Vec<Geometry> {
    sizes.iter().map(|size| Geometry::of(*size)).collect()
}

#[test]
fn new_places_fill_all_gaps_whatever_lives_and_comes_back() {
    let mut rng = Rng::new(1);
    for (old, new) in [
        (&[112][..], 144),
        (&[144], 112),
        (&[16], 48),
        (&[32], 208),
        (&[1360], 240),
        (&[112, 144], 1488),
        (&[160, 112], 1088),
        (&[1088], 1488),
        (&[3408, 3408], 3904),
        (&[144, 112, 16, 512], 2512),
        (&[144, 3264, 16], 6544),
        (&[6544, 304, 32, 144], 13104),
    ] {
        let (old, new) = (of(old), Geometry::of(new));
        assert_eq!(old.iter().map(|g| g.pages.0).sum::<u32>(), new.pages.0, "{old:?} fill {new:?}");
        for percent in [0, 10, 50, 80, 100] {
            let (w, mut live, mut start) = (world(&old, new), Vec::new(), 0);
            let slab = w.slab();
            for g in &old {
                let all = (0..u32::from(g.capacity)).map(|i| (start + i * g.object, g.object));
                live.extend(all.filter(|_| rng.below(100) < percent));
                start += g.pages.bytes().0 as u32;
            }
            live.iter().for_each(|(at, _)| slab.flip_live(*at, 1));
            let cut = slab.cut_gaps();
            assert_eq!((cut, slab.count_live().0), (slab.starts().count(), live.len()));
            while !live.is_empty() {
                if live.len() < 40 || live.len() % 16 == 0 {
                    w.check(&live);
                }
                let (at, len) = live.swap_remove(rng.below(live.len() as u64) as usize);
                assert_eq!((slab.clear(at), slab.clear(at)), (Some(at + len), None));
                let (before, mut cut) = (slab.starts().count(), 0);
                slab.cut_around(at, at + len, |_| cut += 1);
                assert_eq!(slab.starts().count(), before + cut);
            }
            w.check(&[]);
        }
    }
}

#[test]
fn a_slab_settles_when_all_places_off_the_grid_are_back() {
    let (old, new) = (Geometry::of(112), Geometry::of(1488));
    let w = world(&[old, old], new);
    let slab = w.slab();
    // In front of the second object five places fit, one more than on the grid.
    [0, 8192].into_iter().for_each(|at| slab.flip_live(at, 1));
    assert_eq!(slab.cut_gaps(), 10);
    for at in [0, 8192] {
        assert_eq!(slab.clear(at), Some(at + 112));
        slab.cut_around(at, at + 112, |_| panic!("there is no gap of 1488 bytes"));
    }
    let mut all: Vec<u32> = slab.starts().filter(|at| at % 1488 != 0).collect();
    assert_eq!(all.len(), 5);
    while !all.is_empty() {
        assert!(!slab.is_regular());
        let at = all.remove(0);
        slab.close(at);
        slab.cut_grid(at, at + 1488, |grid| assert_eq!(grid % 1488, 0));
        w.check(&[]);
    }
    assert!(slab.is_regular());
    assert_eq!(slab.starts().count(), new.capacity.into());
}

#[test]
fn an_object_across_a_border_is_the_head_of_the_next_slab() {
    // The third object of 6544 bytes lies from 13088 to 19632.
    let w = world(&of(&[6544]), Geometry::of(144));
    let slabs: Vec<_> = (0..4).map(|page| w.morphs.slab(PageId(FIRST.0 + page), &w.records)).collect();
    slabs[1].flip_live(13088 - 8192, 1);
    slabs[2].set_head(19632 - 16384);
    assert_eq!(slabs.iter().map(Mixed::count).collect::<Vec<_>>(), [0, 1, 1, 0]);
    assert_eq!(slabs.iter().map(Mixed::cut_gaps).collect::<Vec<_>>(), [56, 34, 34, 56]);
    assert_eq!(slabs[2].starts().next(), Some(3248), "19632 is 3248 on its page");
    assert_eq!(slabs[2].look(100), Place::Old { class: 3, offset: 16384 - 13088 + 100 });
    assert_eq!(slabs[3].look(26176 - 24576), Place::New { class: 4, offset: 16, was_old: Some(3) });
    assert_eq!(slabs[1].clear(13088 - 8192), Some(19632 - 8192));
    slabs[2].set_head(0);
    let mut cut = 0;
    slabs[2].cut_around(0, 3248, |_| cut += 1);
    assert_eq!((cut, slabs[2].count()), (22, 0));
}
