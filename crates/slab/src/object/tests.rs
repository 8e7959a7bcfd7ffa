extern crate std;
use super::*;
use craton_base::PAGE_SIZE;
use std::vec::Vec;

#[repr(align(8192))]
#[derive(Clone)]
struct Page(#[expect(dead_code)] [u8; PAGE_SIZE]);

fn with_pages(n: usize, test: impl FnOnce(&mut BufferPages)) {
    let mut memory = std::vec![Page([0xa5; PAGE_SIZE]); n];
    let mut map = std::vec![0; n.div_ceil(64)];
    // SAFETY: the memory outlives the supplier.
    let mut pages = unsafe { BufferPages::new(memory.as_mut_ptr().cast(), n * PAGE_SIZE, &mut map) };
    test(&mut pages);
    assert_eq!(pages.used().0, 0, "pages are lost");
}

#[test]
fn what_comes_back_constructed_is_handed_out_constructed() {
    for size in [8, 24, 64, 100, 640, 1024, 5000, 40_000] {
        with_pages(300, |pages| {
            let layout = ObjectLayout::of(size, 0, true).unwrap();
            let mut slabs = ObjectSlabs::new(layout);
            // SAFETY: the supplier is the same.
            unsafe {
                let object = match slabs.take(pages) {
                    Some(Taken::Raw(object)) => object,
                    other => panic!("{other:?}"),
                };
                object.write_bytes(7, size);
                slabs.give(object, true).unwrap();
                assert_eq!(slabs.give(object, true), Err(BadObject::Free));
                assert_eq!(slabs.take(pages), Some(Taken::Constructed(object)));
                assert!(std::slice::from_raw_parts(object, size).iter().all(|b| *b == 7));
                slabs.give(object, false).unwrap();
                assert_eq!(slabs.take(pages), Some(Taken::Raw(object)));
                assert_eq!(slabs.destroy(pages, |_| ()), Err(StillOut(1)));
                slabs.give(object, true).unwrap();
                let mut destroyed = Vec::new();
                slabs.destroy(pages, |o| destroyed.push(o)).unwrap();
                assert_eq!(destroyed, [object]);
            }
        });
    }
}
