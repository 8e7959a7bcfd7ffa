//! A list of free objects, linked through their first words.
//!
//! The second word of [`end`] is no mark: checks of marks need no test for an empty list.
//!
//! **Unsafe.** Reads and writes the first word of free objects.

/// Marks are odd, or 0 without a key.
const NO_MARK: usize = 2;

#[repr(C, align(16))]
struct End([usize; 2]);

static END: End = End([0, NO_MARK]);

#[inline(always)]
pub const fn end() -> *mut u8 {
    (&raw const END).cast_mut().cast()
}

/// Each free object lies on its slab, or is on its way to a caller. `put` moves its mark to the
/// slab, `take` from there, `leave` wipes it; `false`: it was not there.
pub trait Marks {
    fn set(&self, object: *mut u8);
    fn set_on_slab(&self, object: *mut u8);
    fn is_set(&self, object: *mut u8) -> bool;
    fn put(&self, object: *mut u8) -> bool;
    fn take(&self, object: *mut u8) -> bool;
    fn leave(&self, object: *mut u8) -> bool;
    fn wipe(&self, _object: *mut u8) {}
    /// Places from `first` to `last` changed.
    fn set_cut(&self, _first: *mut u8, _last: *mut u8, _places: u16) {}
    /// Whether the address can be read: it lies in pages of slabs.
    fn is_here(&self, _at: *mut u8) -> bool {
        true
    }
}

/// No marks: called for each cut object.
impl<F: Fn(*mut u8)> Marks for F {
    #[inline(always)]
    fn set(&self, object: *mut u8) {
        self(object);
    }

    #[inline(always)]
    fn set_on_slab(&self, object: *mut u8) {
        self(object);
    }

    #[inline(always)]
    fn is_set(&self, _: *mut u8) -> bool {
        true
    }

    #[inline(always)]
    fn put(&self, _: *mut u8) -> bool {
        true
    }

    #[inline(always)]
    fn take(&self, _: *mut u8) -> bool {
        true
    }

    #[inline(always)]
    fn leave(&self, _: *mut u8) -> bool {
        true
    }
}

/// Leaks its objects if dropped.
#[derive(Debug)]
#[must_use]
pub struct Chain {
    head: *mut u8,
    tail: *mut u8,
    len: u32,
    has_row: bool,
}

// SAFETY: it owns its objects.
unsafe impl Send for Chain {}

impl Default for Chain {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl Chain {
    pub const EMPTY: Self = Self { head: end(), tail: core::ptr::null_mut(), len: 0, has_row: false };

    /// # Safety
    /// `head` begins a list of `len` ≥ 1 objects, given up, whose last, `tail`, leads to [`end`].
    pub unsafe fn from_raw(head: *mut u8, tail: *mut u8, len: u32) -> Self {
        Self { head, tail, len, has_row: false }
    }

    /// # Safety
    /// As [`Chain::from_raw`]; append nothing.
    pub unsafe fn from_head(head: *mut u8, len: u32) -> Self {
        Self { head, tail: core::ptr::null_mut(), len, has_row: false }
    }

    pub fn head(&self) -> *mut u8 {
        self.head
    }

    /// The head is [`end`] when empty.
    pub fn into_raw(self) -> (*mut u8, u32) {
        (self.head, self.len)
    }

    /// Objects were just cut, in the order of addresses.
    pub fn has_row(&self) -> bool {
        self.has_row
    }

    /// Null if unknown.
    pub fn last(&self) -> *mut u8 {
        self.tail
    }

    pub fn len(&self) -> u32 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// # Safety
    /// `object` is aligned to 16, at least 16 bytes long, free, and given up.
    #[inline]
    pub unsafe fn push(&mut self, object: *mut u8) {
        debug_assert_eq!(self.tail.is_null(), self.len == 0, "the end of a chain from its head is not known");
        // SAFETY: `object` is given up; the chain owns its last.
        unsafe {
            link(object, end());
            if self.tail.is_null() {
                self.head = object;
            } else {
                link(self.tail, object);
            }
        }
        self.tail = object;
        self.len += 1;
    }

    /// Marks `n` ≥ 1 objects, `bytes` apart.
    /// # Safety
    /// As [`Chain::push`].
    #[inline]
    pub(crate) unsafe fn push_row(&mut self, first: *mut u8, bytes: usize, n: u16, marks: &impl Marks) {
        // SAFETY: by the contract.
        let last = unsafe { first.add(bytes * usize::from(n - 1)) };
        let mut at = first;
        while at != last {
            // SAFETY: `at` is before `last`.
            unsafe {
                let next = at.add(bytes);
                link(at, next);
                marks.set(at);
                at = next;
            }
        }
        marks.set(at);
        // SAFETY: the row is linked and the chain's.
        unsafe {
            link(at, end());
            self.append(first, at, n.into());
        }
        self.has_row = true;
    }

    /// # Safety
    /// As [`Chain::from_raw`].
    #[inline]
    pub unsafe fn append(&mut self, first: *mut u8, last: *mut u8, n: u32) {
        debug_assert_eq!(self.tail.is_null(), self.len == 0, "the end of a chain from its head is not known");
        if self.tail.is_null() {
            self.head = first;
        } else {
            // SAFETY: the chain's last object.
            unsafe { link(self.tail, first) };
        }
        self.tail = last;
        self.len += n;
    }

    /// Exchanges the last object of a row, `bytes` apart, which is returned.
    ///
    /// # Safety
    /// As [`Chain::push`]; the caller owns the object that goes out.
    pub unsafe fn exchange_last(&mut self, object: *mut u8, bytes: usize, marks: &impl Marks) -> Option<*mut u8> {
        let (last, before) = (self.tail, self.tail.wrapping_sub(bytes));
        // SAFETY: what bears its mark is a free object; by the contract.
        unsafe {
            // The row may have this object alone.
            if !self.has_row || !marks.is_here(before) || !marks.is_set(before) || next(before) != last {
                return None;
            }
            link(object, end());
            link(before, object);
        }
        marks.set(object);
        self.tail = object;
        Some(last)
    }

    #[inline]
    pub fn pop(&mut self) -> Option<*mut u8> {
        if self.len == 0 {
            return None;
        }
        let object = self.head;
        // SAFETY: the chain owns its linked first object.
        self.head = unsafe { next(object) };
        if self.head == end() {
            self.tail = core::ptr::null_mut();
        }
        self.len -= 1;
        Some(object)
    }
}

/// # Safety
/// `object` is free, aligned to 8, and the caller's.
#[inline]
pub(crate) unsafe fn link(object: *mut u8, to: *mut u8) {
    // SAFETY: by the contract.
    unsafe { object.cast::<*mut u8>().write(to) }
}

/// # Safety
/// As [`link`]; the link has been written.
#[inline]
pub(crate) unsafe fn next(object: *mut u8) -> *mut u8 {
    // SAFETY: by the contract.
    unsafe { object.cast::<*mut u8>().read() }
}
