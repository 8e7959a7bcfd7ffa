use super::*;
use std::vec::Vec;

fn range(first: u32, len: u32) -> PageRange {
    PageRange::new(PageId(first), Pages(len))
}

fn with(ranges: &[(u32, u32)]) -> Chunks {
    let mut chunks = Chunks::EMPTY;
    for (first, len) in ranges {
        chunks.prepare().unwrap();
        chunks.add(range(*first, *len));
    }
    chunks
}

#[test]
fn h2_pages_come_from_inside_a_chunk_aligned_as_pages_of_the_region() {
    let mut chunks = with(&[(96, 32)]);
    assert_eq!(chunks.alloc(Pages(1), Pages(1)), Some(range(96, 1)));
    assert_eq!(chunks.alloc(Pages(8), Pages(8)), Some(range(104, 8)));
    assert_eq!(chunks.alloc(Pages(17), Pages(1)), None);
    assert_eq!(chunks.alloc(Pages(16), Pages(16)), Some(range(112, 16)));
    assert_eq!(chunks.alloc(Pages(7), Pages(1)), Some(range(97, 7)));
    assert_eq!(chunks.alloc(Pages(1), Pages(1)), None);
}

#[test]
fn h1_a_chunk_leaves_with_its_last_page_but_one_stays() {
    let mut chunks = with(&[(512, 256), (0, 32), (1024, 64)]);
    assert!(chunks.all().is_sorted_by_key(|c| c.range.first.0));
    let all: Vec<_> = core::iter::from_fn(|| chunks.alloc(Pages(4), Pages(4))).collect();
    assert_eq!(all.len(), (256 + 32 + 64) / 4);
    let mut left: Vec<_> = all.iter().filter_map(|r| chunks.free(*r)).collect();
    left.sort_by_key(|r| r.first.0);
    assert_eq!(left, [range(0, 32), range(512, 256)], "the last one that came free stays");
    assert_eq!(chunks.alloc(Pages(64), Pages(64)), Some(range(1024, 64)));
    assert_eq!((chunks.take_empty(), chunks.free(range(1024, 64))), (None, None));
    assert_eq!((chunks.take_empty(), chunks.take_empty()), (Some(range(1024, 64)), None));
}

#[test]
fn h3_many_chunks_are_kept_in_order_while_the_table_grows() {
    let order: Vec<_> = (0..500).map(|i| (i * 7919 % 500 * 256, 256)).collect();
    let mut chunks = with(&order);
    assert!(chunks.all().is_sorted_by_key(|c| c.range.first.0) && chunks.all().len() == 500);
    for i in 0..500 {
        assert_eq!(chunks.alloc(Pages(256), Pages(1)), Some(range(i * 256, 256)));
    }
    assert_eq!(chunks.free(range(300 * 256, 256)), Some(range(300 * 256, 256)));
    assert_eq!(chunks.alloc(Pages(1), Pages(1)), None);
    chunks.clear();
    assert!(chunks.all().is_empty());
}
