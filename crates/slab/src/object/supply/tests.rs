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
fn a_buffer_gives_each_page_once_and_takes_them_back() {
    buffer(130, 0, |supplier, first| {
        assert_eq!(supplier.pages(), Pages(130));
        let all: Vec<_> = core::iter::from_fn(|| supplier.get(Pages(1), Pages(1))).collect();
        let places: Vec<usize> = all.iter().map(|p| (*p as usize - first) / PAGE_SIZE).collect();
        assert_eq!(places, (0..130).collect::<Vec<_>>());
        // SAFETY: these are out.
        unsafe {
            supplier.put(all[64], Pages(1));
            supplier.put(all[63], Pages(1));
        }
        assert_eq!(supplier.get(Pages(3), Pages(1)), None);
        assert_eq!(supplier.get(Pages(2), Pages(1)), Some(all[63]));
        assert_eq!((supplier.used(), supplier.get(Pages(1), Pages(1))), (Pages(130), None));
    });
}

#[test]
fn a_buffer_that_begins_or_ends_within_a_page_has_the_whole_ones() {
    buffer(4, 5, |supplier, first| {
        assert_eq!(supplier.pages(), Pages(3));
        assert_eq!(supplier.get(Pages(3), Pages(1)).map(|p| p as usize), Some(first + PAGE_SIZE));
    });
    // SAFETY: the supplier of no page gives none.
    let mut none = unsafe { BufferPages::new(core::ptr::null_mut(), 100, &mut []) };
    assert_eq!((none.pages(), none.get(Pages(1), Pages(1))), (Pages(0), None));
}

#[test]
fn aligned_pages_of_a_buffer_are_aligned_as_addresses() {
    buffer(40, 0, |supplier, _| {
        for align in [2, 8, 4, 1, 8] {
            let at = supplier.get(Pages(3), Pages(align)).unwrap() as usize;
            assert!(at.is_multiple_of(align as usize * PAGE_SIZE));
        }
        assert_eq!(supplier.get(Pages(3), Pages(1 << 20)), None);
    });
}

/// Frames as bits; what it is asked is as a zone would be.
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
fn frames_are_given_as_pages_and_the_rest_of_a_block_goes_back() {
    let frames = Frames(RefCell::new(std::vec![false; 64]));
    let used = || frames.0.borrow().iter().filter(|used| **used).count();
    let base = PAGE_SIZE as *mut u8;
    // SAFETY: nobody looks at the memory.
    let mut supplier = unsafe { FramePages::new(&frames, base) };
    let nine = supplier.get(Pages(9), Pages(1)).unwrap();
    assert_eq!((nine, used()), (base, 18));
    let one = supplier.get(Pages(1), Pages(1)).unwrap();
    assert_eq!((one, used()), (base.wrapping_add(9 * PAGE_SIZE), 20));
    let aligned = supplier.get(Pages(1), Pages(4)).unwrap();
    assert_eq!((aligned, used()), (base.wrapping_add(12 * PAGE_SIZE), 22));
    assert_eq!(supplier.get(Pages(33), Pages(1)), None);
    for (at, pages) in [(nine, 9), (one, 1), (aligned, 1)] {
        // SAFETY: these are out.
        unsafe { supplier.put(at, Pages(pages)) };
    }
    assert_eq!(used(), 0);
}
