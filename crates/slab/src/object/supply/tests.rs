use super::*;
extern crate std;
use core::cell::RefCell;
use std::vec::Vec;

fn buffer(pages: usize, skew: usize, test: impl FnOnce(&mut BufferPages, usize)) {
    let mut memory = std::vec![0u8; (pages + 1) * PAGE_SIZE];
    let start = memory.as_mut_ptr();
    let first = start.wrapping_add((start as usize).wrapping_neg() % PAGE_SIZE);
    let mut map = std::vec![!0; pages.div_ceil(64)];
    // SAFETY: the memory outlives the supplier.
    let mut supplier = unsafe { BufferPages::new(first.wrapping_add(skew), pages * PAGE_SIZE - skew, &mut map) };
    test(&mut supplier, first as usize);
}

#[test]
fn a_buffer_allocates_each_page_once_and_frees_it() {
    buffer(130, 0, |supplier, first| {
        assert_eq!(supplier.pages(), 130);
        let all: Vec<_> = core::iter::from_fn(|| supplier.get(PAGE_SIZE, PAGE_SIZE)).collect();
        let places: Vec<usize> = all.iter().map(|p| (*p as usize - first) / PAGE_SIZE).collect();
        assert_eq!(places, (0..130).collect::<Vec<_>>());
        // SAFETY: out.
        unsafe {
            supplier.put(all[64], PAGE_SIZE);
            supplier.put(all[63], PAGE_SIZE);
        }
        assert_eq!(supplier.get(3 * PAGE_SIZE, PAGE_SIZE), None);
        assert_eq!(supplier.get(2 * PAGE_SIZE, PAGE_SIZE), Some(all[63]));
        assert_eq!((supplier.used(), supplier.get(PAGE_SIZE, PAGE_SIZE)), (130, None));
    });
}

#[test]
fn a_buffer_that_begins_or_ends_within_a_page_has_the_whole_ones() {
    buffer(4, 5, |supplier, first| {
        assert_eq!(supplier.pages(), 3);
        assert_eq!(supplier.get(3 * PAGE_SIZE, PAGE_SIZE).map(|p| p as usize), Some(first + PAGE_SIZE));
    });
    // SAFETY: there is no page.
    let mut none = unsafe { BufferPages::new(core::ptr::null_mut(), 100, &mut []) };
    assert_eq!((none.pages(), none.get(PAGE_SIZE, PAGE_SIZE)), (0, None));
}

#[test]
fn aligned_pages_of_a_buffer_are_aligned_as_addresses() {
    buffer(40, 0, |supplier, _| {
        for align in [2, 8, 4, 1, 8].map(|pages| pages * PAGE_SIZE) {
            let at = supplier.get(3 * PAGE_SIZE, align).unwrap() as usize;
            assert!(at.is_multiple_of(align));
        }
        assert_eq!(supplier.get(3 * PAGE_SIZE, PAGE_SIZE << 20), None);
    });
}

/// Behaves as a zone.
struct Frames(RefCell<Vec<bool>>);

#[derive(Clone, Copy, Debug, PartialEq)]
struct Refused;

impl core::fmt::Display for Refused {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "refused")
    }
}

impl core::error::Error for Refused {}

impl FrameSource for Frames {
    type Error = Refused;
    const HUGE_ORDER: u32 = 9;

    fn get(&self, order: u32, _: Density) -> Result<usize, Refused> {
        let frames = 1 << order;
        let len = self.0.borrow().len();
        let first = (0..len)
            .step_by(frames)
            .find(|at| at + frames <= len && self.0.borrow()[*at..at + frames].iter().all(|used| !used));
        let first = first.ok_or(Refused)?;
        self.0.borrow_mut()[first..first + frames].fill(true);
        Ok(first)
    }

    fn put(&self, first: usize, frames: usize) -> Result<(), Refused> {
        assert!(self.0.borrow()[first..first + frames].iter().all(|used| *used), "{first} {frames}");
        self.0.borrow_mut()[first..first + frames].fill(false);
        Ok(())
    }

    fn get_at(&self, _: usize, _: usize) -> Result<(), Refused> {
        Err(Refused)
    }
    fn online(&self, _: usize, _: usize) -> Result<(), Refused> {
        Err(Refused)
    }
    fn offline(&self, _: usize, _: usize) -> Result<(), Refused> {
        Err(Refused)
    }
    fn reclaim(&self, _: usize) -> Option<usize> {
        None
    }
}

#[test]
fn frames_serve_as_pages_and_the_rest_of_a_block_is_freed() {
    let frames = Frames(RefCell::new(std::vec![false; 64]));
    let used = || frames.0.borrow().iter().filter(|used| **used).count();
    let base = PAGE_SIZE as *mut u8;
    // SAFETY: nothing accesses the memory.
    let mut supplier = unsafe { FramePages::new(&frames, base) };
    let nine = supplier.get(9 * PAGE_SIZE, PAGE_SIZE).unwrap();
    assert_eq!((nine, used()), (base, 18));
    let one = supplier.get(PAGE_SIZE, PAGE_SIZE).unwrap();
    assert_eq!((one, used()), (base.wrapping_add(9 * PAGE_SIZE), 20));
    let aligned = supplier.get(PAGE_SIZE, 4 * PAGE_SIZE).unwrap();
    assert_eq!((aligned, used()), (base.wrapping_add(12 * PAGE_SIZE), 22));
    assert_eq!(supplier.get(33 * PAGE_SIZE, PAGE_SIZE), None);
    // In the gap before the aligned ones.
    let frame = supplier.get(4096, 4096).unwrap();
    assert_eq!((frame, used()), (base.wrapping_add(10 * PAGE_SIZE), 23));
    assert_eq!(supplier.get(2048, 2048), None);
    // SAFETY: out.
    unsafe { supplier.put(frame, 4096) };
    for (at, pages) in [(nine, 9), (one, 1), (aligned, 1)] {
        // SAFETY: out.
        unsafe { supplier.put(at, pages * PAGE_SIZE) };
    }
    assert_eq!(used(), 0);
}

#[test]
fn a_buffer_has_pages_of_other_lengths() {
    let mut memory = std::vec![0u8; 10 << 10];
    let mut map = [0];
    // SAFETY: the memory outlives the supplier.
    let mut supplier = unsafe { BufferPages::with_pages(memory.as_mut_ptr(), memory.len(), 1 << 10, &mut map) };
    assert!(supplier.pages() >= 9);
    let two = supplier.get(2048, 2048).unwrap();
    assert!((two as usize).is_multiple_of(2048));
    assert_eq!((supplier.used(), supplier.get(512, 512), supplier.get(1500, 1024)), (2, None, None));
    // SAFETY: out.
    unsafe { supplier.put(two, 2048) };
    assert_eq!(supplier.used(), 0);
}
