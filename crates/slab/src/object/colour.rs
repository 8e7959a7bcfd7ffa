//! Colours (Bonwick94 §4.3): the offset of a slab's first object.
//!
//! A step is at least the alignment, and the largest power of two common to objects' distances, up
//! to a line: then no object lies across one line more.

use super::layout::ObjectLayout;

const LINE: usize = 64;

pub(super) const fn step(align: usize, stride: usize) -> usize {
    let common = 1 << stride.trailing_zeros();
    let most = if common < LINE { common } else { LINE };
    if align < most { most } else { align }
}

pub(super) const fn count(slack: usize, step: usize) -> u32 {
    (slack / step) as u32 + 1
}

/// Zeros: the first colour is next.
#[derive(Debug)]
pub(super) struct Colours {
    next: u32,
    is_off: bool,
}

impl Colours {
    pub(super) const FIRST: Self = Self { next: 0, is_off: false };

    pub(super) fn set(&mut self, on: bool) {
        self.is_off = !on;
    }

    pub(super) fn next(&mut self, layout: &ObjectLayout) -> usize {
        if self.is_off {
            return 0;
        }
        let colour = self.next;
        self.next = if colour + 1 < layout.colours { colour + 1 } else { 0 };
        (colour * layout.colour_step) as usize
    }
}
