//! A cache on spans of a page heap, and on frames of a zone.

use craton_base::{Density, HugePages, Pages};
use craton_frames::{Config, Init, Metadata, Seat, Sizes, Standard, Zone};
use craton_sim::{BumpSpans, Checked, RealMemory};
use craton_slab::object::{FramePages, ObjectLayout, ObjectSlabs, PageSupplier, SpanPages};

fn exercise(supplier: &mut impl PageSupplier, page: usize) {
    for (size, align, constructed) in
        [(40, 0, true), (1024, 0, true), (3000, 64, false), (9000, 0, true), (16384, 16384, false)]
    {
        let mut slabs = ObjectSlabs::new(ObjectLayout::of_pages(size, align, constructed, page).unwrap());
        let n = 20 + 20_000 / size;
        // SAFETY: the supplier is the same.
        unsafe {
            let all: Vec<*mut u8> = (0..n).map(|_| slabs.alloc(supplier).unwrap().object()).collect();
            (0..=u8::MAX).cycle().zip(&all).for_each(|(i, object)| object.write_bytes(i, size));
            for (i, object) in (0..=u8::MAX).cycle().zip(&all) {
                assert!((*object as usize).is_multiple_of(align.max(8)));
                assert!(std::slice::from_raw_parts(*object, size).iter().all(|b| *b == i));
                slabs.free(*object, true).unwrap();
            }
            slabs.check().unwrap();
            slabs.destroy(supplier, |_| ()).unwrap();
        }
    }
}

#[test]
fn a_page_heap_supplies_slabs() {
    let hugepages = HugePages(8);
    let memory = RealMemory::new(hugepages);
    let mut spans = Checked::new(BumpSpans::new(hugepages.pages()));
    // SAFETY: the memory's pages.
    exercise(&mut unsafe { SpanPages::new(&mut spans, memory.base(), Density::Dense) }, 8 << 10);
    assert_eq!(spans.live(), Pages(0));
}

#[test]
fn a_zone_of_frames_supplies_slabs() {
    let hugepages = HugePages(8);
    let memory = RealMemory::new(hugepages);
    let frames = hugepages.bytes().0 >> 12;
    let sizes = Sizes::of::<Standard>(frames, 1);
    fn array<T: Default>(len: usize) -> Vec<T> {
        (0..len).map(|_| T::default()).collect()
    }
    let (rows, children, trees, index) =
        (array(sizes.rows), array(sizes.children), array(sizes.trees), array(sizes.index));
    let locals = array(sizes.locals);
    let metadata = Metadata { rows: &rows, children: &children, trees: &trees, index: &index, locals: &locals };
    let zone: Zone = Zone::new(frames, metadata, Init::Free, Config::new(1)).unwrap();
    let seat = Seat::new(&zone, 0).unwrap();
    // SAFETY: the memory's frames.
    let mut supplier = unsafe { FramePages::new(&seat, memory.base()) };
    exercise(&mut supplier, 8 << 10);
    exercise(&mut supplier, 4 << 10);
    assert_eq!(zone.free_frames(), frames);
}
