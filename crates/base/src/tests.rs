extern crate std;
use crate::*;
use std::vec::Vec;

#[test]
fn bits_agree_with_a_list_of_booleans() {
    // A fixed walk over awkward ranges: word edges, whole words, single bits, the end.
    let mut bits = PageBits::EMPTY;
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
        assert_eq!(bits.longest_clear() as usize, longest);
        let runs: Vec<_> = bits.clear_runs().collect();
        assert!(runs.iter().all(|(f, l)| model[*f as usize..(*f + *l) as usize].iter().all(|b| !b)));
        assert_eq!(runs.iter().map(|r| r.1).sum::<u32>() + bits.len(), 256);
    }
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
