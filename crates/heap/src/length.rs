//! The length of the span that begins at a page.
//!
//! **State.** A large object touches this word, not its larger record. Top bit: the length of a
//! freed large object; next bit: its last page is a guard page.
//!
//! **Unsafe.** Declares that zeros are a valid length.

use craton_base::atomic::{AtomicU32, Ordering::Relaxed};
use craton_base::{Pages, Zeroed};

#[derive(Default, Debug)]
#[repr(transparent)]
pub struct SpanLength(AtomicU32);

// SAFETY: an atomic of zero is valid.
unsafe impl Zeroed for SpanLength {}

const GONE: u32 = 1 << 31;
const GUARD: u32 = 1 << 30;

impl SpanLength {
    pub const SHAPE: [(&'static str, usize); 2] =
        [("length.gone_bit", GONE as usize), ("length.guard_bit", GUARD as usize)];

    /// 0 when no span begins here.
    #[inline]
    pub fn pages(&self) -> Pages {
        let pages = self.0.load(Relaxed);
        Pages(if pages & GONE == 0 { pages & !GUARD } else { 0 })
    }

    #[inline]
    pub fn set_pages(&self, pages: Pages) {
        self.0.store(pages.0, Relaxed);
    }

    /// Also after a free.
    #[inline]
    pub fn is_guarded(&self) -> bool {
        self.0.load(Relaxed) & GUARD != 0
    }

    #[inline]
    pub fn set_guarded(&self, guarded: bool) {
        let others = self.0.load(Relaxed) & !GUARD;
        self.0.store(if guarded { others | GUARD } else { others }, Relaxed);
    }

    /// A freed large object's length, until another span begins here.
    pub fn gone(&self) -> Option<Pages> {
        let pages = self.0.load(Relaxed);
        (pages & GONE != 0).then_some(Pages(pages & !(GONE | GUARD)))
    }

    #[inline]
    pub fn set_gone(&self, pages: Pages) {
        self.0.store(pages.0 | GONE | self.0.load(Relaxed) & GUARD, Relaxed);
    }
}

#[cfg(test)]
mod tests;
