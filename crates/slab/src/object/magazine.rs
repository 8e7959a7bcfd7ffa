//! Magazines (Bonwick & Adams 2001 §3).
//!
//! **Unsafe.** Raw memory of the supplier's.

use super::layout::ObjectLayout;
use crate::working_set::WorkingSet;
use core::ptr::NonNull;

const HEAD: usize = 16;
const FIRST_SHIFT: usize = 6;
/// 6, 14, 30, 62 and 126 rounds: with the head powers of two of bytes.
pub(super) const SIZES: usize = 5;

pub(super) const fn rounds_of(size: usize) -> usize {
    ((1 << (FIRST_SHIFT + size)) - HEAD) / size_of::<*mut u8>()
}

pub(super) const LAYOUTS: [ObjectLayout; SIZES] = {
    let mut layouts = [ObjectLayout::UNSET; SIZES];
    let mut size = 0;
    while size < SIZES {
        layouts[size] = match ObjectLayout::of(1 << (FIRST_SHIFT + size), 0, false) {
            Ok(layout) => layout,
            Err(_) => panic!("magazines are small"),
        };
        size += 1;
    }
    layouts
};

#[repr(C)]
struct Head {
    next: Option<NonNull<Head>>,
    len: u16,
    size: u16,
}

const _: () = assert!(size_of::<Head>() == HEAD);

#[derive(Debug)]
#[must_use = "its memory is lost unless it goes back to the depot"]
#[repr(transparent)]
pub struct Magazine(NonNull<Head>);

// SAFETY: it owns its memory.
unsafe impl Send for Magazine {}

impl Magazine {
    /// # Safety
    /// The memory is the caller's and large enough.
    pub(super) unsafe fn begin(at: *mut u8, size: u16) -> Option<Self> {
        let head = NonNull::new(at.cast::<Head>())?;
        // SAFETY: by the contract.
        unsafe { head.write(Head { next: None, len: 0, size }) };
        Some(Self(head))
    }

    #[inline]
    #[expect(clippy::mut_from_ref, reason = "a magazine stands for its head; references do not outlive an expression")]
    fn head(&self) -> &mut Head {
        // SAFETY: `self` owns the memory.
        unsafe { &mut *self.0.as_ptr() }
    }

    fn rounds(&self) -> *mut *mut u8 {
        self.0.as_ptr().wrapping_add(1).cast()
    }

    pub(super) fn address(&self) -> *mut u8 {
        self.0.as_ptr().cast()
    }

    pub(super) fn size(&self) -> usize {
        self.head().size.into()
    }

    pub fn len(&self) -> usize {
        self.head().len.into()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn capacity(&self) -> usize {
        rounds_of(self.size())
    }

    /// The next one last.
    pub fn as_slice(&self) -> &[*mut u8] {
        // SAFETY: the first `len` rounds were written.
        unsafe { core::slice::from_raw_parts(self.rounds(), self.len()) }
    }

    /// `false`: no room.
    #[inline]
    pub fn push(&mut self, object: *mut u8) -> bool {
        let len = self.len();
        if len == self.capacity() {
            return false;
        }
        // SAFETY: there is room.
        unsafe { *self.rounds().add(len) = object };
        self.head().len += 1;
        true
    }

    #[inline]
    pub fn pop(&mut self) -> Option<*mut u8> {
        let object = *self.as_slice().last()?;
        self.head().len -= 1;
        Some(object)
    }

    pub(super) fn fill(&mut self, rounds: &[*mut u8]) {
        debug_assert!(self.is_empty() && rounds.len() <= self.capacity());
        // SAFETY: there is room.
        unsafe { self.rounds().copy_from_nonoverlapping(rounds.as_ptr(), rounds.len()) };
        self.head().len = rounds.len() as u16;
    }

    pub(super) fn drop_last(&mut self, n: usize) {
        self.head().len -= n as u16;
    }
}

#[derive(Debug)]
pub(super) struct Stack {
    first: Option<NonNull<Head>>,
    pub(super) set: WorkingSet,
}

impl Stack {
    pub(super) const EMPTY: Self = Self { first: None, set: WorkingSet::EMPTY };

    pub(super) fn push(&mut self, magazine: Magazine) {
        magazine.head().next = self.first;
        self.first = Some(magazine.0);
        self.set.add();
    }

    fn unlink(&mut self) -> Option<Magazine> {
        let magazine = Magazine(self.first?);
        self.first = magazine.head().next;
        Some(magazine)
    }

    pub(super) fn pop(&mut self) -> Option<Magazine> {
        self.unlink().inspect(|_| self.set.remove())
    }

    pub(super) fn pop_idle(&mut self) -> Option<Magazine> {
        self.unlink().inspect(|_| self.set.drop_idle())
    }

    pub(super) fn check(&self, is_full: bool) -> Option<(u32, u64)> {
        let (mut at, mut count, mut objects) = (self.first, 0, 0);
        while let Some(head) = at {
            // SAFETY: on our list.
            let Head { next, len, .. } = unsafe { head.read() };
            if (len > 0) != is_full || count == self.set.count() {
                return None;
            }
            (count, objects, at) = (count + 1, objects + u64::from(len), next);
        }
        (count == self.set.count()).then_some((count, objects))
    }
}
