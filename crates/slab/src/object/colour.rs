//! Colours: where the first object of a slab lies.
//!
//! **From.** Bonwick94 §4.3. Slabs have a tail that no object needs; each begins its objects a step
//! further into it than the one before, so that equal members of objects do not meet in the same
//! lines of a processor's cache. Steps are of a cache line, or the alignment if that is more:
//! closer ones would only make objects of whole lines straddle two.
//!
//! **Units.** Bytes.

use super::layout::ObjectLayout;

/// Cache line.
const LINE: usize = 64;

/// How far one colour is from the next.
pub(super) const fn step(align: usize) -> usize {
    if align < LINE { LINE } else { align }
}

/// Colours that fit into so many bytes that no object needs.
pub(super) const fn count(slack: usize, step: usize) -> u32 {
    (slack / step) as u32 + 1
}

/// Which colour is next. All zeros are the first one.
#[derive(Debug)]
pub(super) struct Colours {
    next: u32,
    is_off: bool,
}

impl Colours {
    pub(super) const FIRST: Self = Self { next: 0, is_off: false };

    /// All slabs from now on have the first colour, unless `on`.
    pub(super) fn set(&mut self, on: bool) {
        self.is_off = !on;
    }

    /// Where the next slab's objects begin, in bytes from its start.
    pub(super) fn next(&mut self, layout: &ObjectLayout) -> usize {
        if self.is_off {
            return 0;
        }
        let colour = self.next;
        self.next = if colour + 1 < layout.colours { colour + 1 } else { 0 };
        (colour * layout.colour_step) as usize
    }
}
