extern crate std;
use crate::*;
use core::ops::ControlFlow;
use std::vec::Vec;

#[test]
fn bits_agree_with_a_list_of_booleans() {
    let mut bits = <PageBits>::EMPTY;
    let mut model = [false; 256];
    let ranges = [(0, 1), (63, 2), (64, 64), (10, 100), (255, 1), (128, 128), (0, 256), (5, 0)];
    for round in 0..64u32 {
        let (first, len) = ranges[(round as usize * 5) % ranges.len()];
        let set = round % 3 != 2;
        if set {
            bits.insert(first, len)
        } else {
            bits.remove(first, len)
        }
        model[first as usize..(first + len) as usize].fill(set);
        for from in [0, 1, 62, 63, 64, 127, 200, 255, 256] {
            let find = |want| (from..256).find(|i| model[*i as usize] == want).unwrap_or(256);
            assert_eq!(bits.next_set(from), find(true));
            assert_eq!(bits.next_clear(from), find(false));
        }
        assert_eq!(bits.len() as usize, model.iter().filter(|b| **b).count());
        assert_eq!(bits.count(60, 10) as usize, model[60..70].iter().filter(|b| **b).count());
        let longest = model.split(|b| *b).map(<[bool]>::len).max().unwrap_or(0);
        assert_eq!(bits.longest_clear(PAGES_PER_HUGEPAGE) as usize, longest);
        let runs: Vec<_> = bits.clear_runs().collect();
        assert!(runs.iter().all(|(f, l)| model[*f as usize..(*f + *l) as usize].iter().all(|b| !b)));
        assert_eq!(runs.iter().map(|r| r.1).sum::<u32>() + bits.len(), 256);
    }
}

fn sets() -> impl Iterator<Item = (PageBits, [bool; 256])> {
    let mut seed = 0x9E37_79B9_7F4A_7C15u64;
    (0..400u32).map(move |round| {
        let (mut bits, mut model) = (PageBits::EMPTY, [false; 256]);
        for i in 0..256u32 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            if (seed >> 33) % 32 < u64::from(round % 32) {
                let len = (1 + (round / 32) % 8).min(256 - i);
                bits.insert(i, len);
                model[i as usize..(i + len) as usize].fill(true);
            }
        }
        (bits, model)
    })
}

#[test]
fn ranges_are_judged_page_by_page() {
    for (bits, model) in sets() {
        for (first, len) in [(0, 1), (3, 61), (60, 10), (64, 64), (17, 200), (255, 1), (0, 256), (9, 0)] {
            let range = &model[first as usize..(first + len) as usize];
            assert_eq!(bits.any(first, len), range.contains(&true));
            assert_eq!(bits.all(first, len), !range.contains(&false));
        }
        for before in [0, 1, 63, 64, 65, 200, 256] {
            let end = model[..before as usize].iter().rposition(|member| *member).map_or(0, |i| i + 1);
            assert_eq!(bits.end_of_last_set(before) as usize, end);
        }
        let mut ends = PageBits::EMPTY;
        [5, 64, 130, 191, 254].into_iter().for_each(|i| ends.insert(i, 1));
        for from in [0, 6, 63, 64, 131, 255, 256] {
            let is_end = |i: &usize| !model[*i] || ends.contains(*i as u32);
            assert_eq!(bits.next_clear_or(&ends, from) as usize, (from as usize..256).find(is_end).unwrap_or(256));
        }
        let (mut runs, expected) = (Vec::new(), bits.clear_runs().collect::<Vec<_>>());
        bits.try_clear_runs(|first, len| {
            runs.push((first, len));
            ControlFlow::Continue(())
        });
        assert_eq!(runs, expected, "{bits:?}");
        let longest = model.split(|member| *member).map(<[bool]>::len).max().unwrap_or(0) as u32;
        for more in [0, 1, 5, 300] {
            assert_eq!(bits.longest_clear(longest + more), longest);
        }
    }
}

#[test]
fn a_block_is_cut_from_the_smallest_that_will_do() {
    for (bits, model) in sets() {
        let free = |first: usize, len: usize| !model[first..first + len].contains(&true);
        let blocks = |level: u32| (0..256).step_by(1 << level).filter(move |first| free(*first, 1 << level));
        let level_of = |page: usize| (0..4).rev().find(|l| free(page >> l << l, 1 << l)).unwrap_or(0);
        assert_eq!(bits.largest_clear_block(), (0..4).filter(|level| blocks(*level).next().is_some()).count() as u32);
        for level in 0..4 {
            let found = bits.smallest_clear_block(level).map(|page| page as usize);
            let least = blocks(level).map(level_of).min();
            assert_eq!(found.map(level_of), least, "level {level} of {bits:?}");
            assert!(found.is_none_or(|page| page % (1 << level) == 0 && free(page, 1 << level)));
        }
    }
}

#[test]
fn a_set_of_eight_pages_ends_at_the_eighth() {
    type Bits = PageBits<Huge64K>;
    assert_eq!((Bits::ALL.len(), Bits::ALL.next_clear(0), Bits::EMPTY.next_set(0)), (8, 8, 8));
    for used in 0..256u32 {
        let mut bits = Bits::EMPTY;
        (0..8).filter(|i| used >> i & 1 == 1).for_each(|i| bits.insert(i, 1));
        let runs: Vec<_> = bits.clear_runs().collect();
        assert_eq!(runs.iter().map(|r| r.1).sum::<u32>(), 8 - used.count_ones());
        assert_eq!(bits.longest_clear(8), runs.iter().map(|r| r.1).max().unwrap_or(0));
        assert_eq!(bits.complement().len() + bits.len(), 8);
        assert_eq!(bits.end_of_last_set(8), 32 - used.leading_zeros());
        assert_eq!(bits.largest_clear_block() == 4, used == 0);
    }
}

#[test]
fn a_geometry_converts_as_the_units_of_the_machine_do() {
    let range = PageRange::new(PageId(500), Pages(300));
    let parts: Vec<_> = Huge2M::parts(range).collect();
    assert_eq!(parts, [(HugePageId(1), 244, 12), (HugePageId(2), 0, 256), (HugePageId(3), 0, 32)]);
    for page in [PageId(0), PageId(255), PageId(256), PageId(513)] {
        assert_eq!((Huge2M::hugepage(page), Huge2M::in_hugepage(page)), (page.hugepage(), page.in_hugepage()));
    }
    assert_eq!(Huge2M::run(HugePageId(3), HugePages(2)), HugePageId(3).run(HugePages(2)));
    assert_eq!(Huge2M::hugepages_up(Pages(257)), Pages(257).hugepages_up());
    assert_eq!(Huge64K::part(HugePageId(2), 3, 2), PageRange::new(PageId(19), Pages(2)));
}

#[test]
fn units_round_as_their_names_say() {
    assert_eq!(Bytes(0).pages_up(), Some(Pages(0)));
    assert_eq!(Bytes(1).pages_up(), Some(Pages(1)));
    assert_eq!(Bytes(PAGE_SIZE + 1).pages_up(), Some(Pages(2)));
    assert_eq!(Bytes(usize::MAX).pages_up(), None);
    assert_eq!(Pages(257).hugepages_up(), HugePages(2));
    assert_eq!(PageId(513).hugepage(), HugePageId(2));
    assert_eq!(PageId(513).in_hugepage(), 1);
    assert_eq!(HugePageId(2).range().end(), PageId(768));
}

#[test]
fn a_table_refuses_what_is_beyond_it() {
    struct Entry(u64);
    // SAFETY: a `u64` of zeros is 0.
    unsafe impl Zeroed for Entry {}
    let mut table = Table::from_slice((0..4).map(Entry).collect::<Vec<_>>().leak());
    table[1].0 = 7;
    assert_eq!((table[1].0, table[3].0, table.len()), (7, 3, 4));
    assert!(std::panic::catch_unwind(move || table[4].0).is_err());
}
