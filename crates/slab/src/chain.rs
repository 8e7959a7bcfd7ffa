//! A list of free objects, linked through their first words.
//!
//! **State.** The last link leads to [`end`], whose second word is no mark: a cache that checks
//! each object's mark need not test for an empty list.
//!
//! **Unsafe.** Reads and writes the first word of free objects.

/// Marks are odd, or 0 without a key.
const NO_MARK: usize = 2;

#[repr(C, align(16))]
struct End([usize; 2]);

static END: End = End([0, NO_MARK]);

/// Returns the end of every list; it is never written.
#[inline(always)]
pub const fn end() -> *mut u8 {
    (&raw const END).cast_mut().cast()
}

/// The front end's marks of free objects: on their slab, or on their way to a caller.
pub trait Marks {
    /// Marks an object as free, in a cache or on its way.
    fn set(&self, object: *mut u8);
    /// Marks an object as free, on its slab.
    fn set_on_slab(&self, object: *mut u8);
    /// Whether an object is marked as free, in a cache or on its way.
    fn is_set(&self, object: *mut u8) -> bool;
    /// Comes to its slab; `false`: it was not on its way.
    fn put(&self, object: *mut u8) -> bool;
    /// Leaves its slab; `false`: it was not there.
    fn take(&self, object: *mut u8) -> bool;
    /// Wipes the mark, in a complete slab; `false`: it was not there.
    fn leave(&self, object: *mut u8) -> bool;
    /// Wipes the mark of an object whose place is gone.
    fn wipe(&self, _object: *mut u8) {}
    /// A slab's number of cut places; those from `first` to `last` have changed.
    fn set_cut(&self, _first: *mut u8, _last: *mut u8, _places: u16) {}
    /// Whether an address lies in pages of slabs, so that it can be read.
    fn is_here(&self, _at: *mut u8) -> bool {
        true
    }
}

/// Without marks: called for each object that is cut.
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

/// A list of free objects between a slab and a cache. It owns its objects, and leaks them if
/// dropped.
#[derive(Debug)]
#[must_use]
pub struct Chain {
    head: *mut u8,
    tail: *mut u8,
    len: u32,
    /// Objects lie in the order of addresses, just cut.
    has_row: bool,
}

// SAFETY: owns its objects, as a box does.
unsafe impl Send for Chain {}

impl Default for Chain {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl Chain {
    pub const EMPTY: Self = Self { head: end(), tail: core::ptr::null_mut(), len: 0, has_row: false };

    /// # Safety
    /// `head` begins a list of exactly `len` ≥ 1 objects whose last, `tail`, leads to [`end`]. The
    /// caller gives all up.
    pub unsafe fn from_raw(head: *mut u8, tail: *mut u8, len: u32) -> Self {
        Self { head, tail, len, has_row: false }
    }

    /// Makes a chain of `len` ≥ 1 objects.
    ///
    /// # Safety
    /// As [`Chain::from_raw`]. The chain does not know its last object: append nothing.
    pub unsafe fn from_head(head: *mut u8, len: u32) -> Self {
        Self { head, tail: core::ptr::null_mut(), len, has_row: false }
    }

    /// [`end`] of an empty chain.
    pub fn head(&self) -> *mut u8 {
        self.head
    }

    /// First object ([`end`] when empty) and length.
    pub fn into_raw(self) -> (*mut u8, u32) {
        (self.head, self.len)
    }

    /// Whether the chain has objects just cut, in the order of addresses.
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

    /// Objects leave in the order of arrival.
    /// # Safety
    /// `object` is aligned to 16, at least 16 bytes long, free, and given up.
    #[inline]
    pub unsafe fn push(&mut self, object: *mut u8) {
        debug_assert_eq!(self.tail.is_null(), self.len == 0, "the end of a chain from its head is not known");
        // SAFETY: the caller gives the object; the chain owns its last one.
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

    /// `n` ≥ 1 objects, `bytes` apart; marks each.
    /// # Safety
    /// As [`Chain::push`], for each.
    #[inline]
    pub(crate) unsafe fn push_row(&mut self, first: *mut u8, bytes: usize, n: u16, marks: &impl Marks) {
        // SAFETY: `n` objects lie in the row.
        let last = unsafe { first.add(bytes * usize::from(n - 1)) };
        let mut at = first;
        while at != last {
            // SAFETY: the row goes on until `last`.
            unsafe {
                let next = at.add(bytes);
                link(at, next);
                marks.set(at);
                at = next;
            }
        }
        marks.set(at);
        // SAFETY: the row is linked, and given to the chain.
        unsafe {
            link(at, end());
            self.append(first, at, n.into());
        }
        self.has_row = true;
    }

    /// Appends `n` ≥ 1 free objects, linked from `first` to `last`.
    ///
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

    #[inline]
    pub fn pop(&mut self) -> Option<*mut u8> {
        if self.len == 0 {
            return None;
        }
        let object = self.head;
        // SAFETY: the chain owns `len` > 0 linked objects; this is the first.
        self.head = unsafe { next(object) };
        if self.head == end() {
            self.tail = core::ptr::null_mut();
        }
        self.len -= 1;
        Some(object)
    }
}

/// # Safety
/// `object` is a free object's first byte, aligned to 8, the caller's.
#[inline]
pub(crate) unsafe fn link(object: *mut u8, to: *mut u8) {
    // SAFETY: by the contract; a free object's first word is ours.
    unsafe { object.cast::<*mut u8>().write(to) }
}

/// # Safety
/// As [`link`]; the link has been written.
#[inline]
pub(crate) unsafe fn next(object: *mut u8) -> *mut u8 {
    // SAFETY: by the contract.
    unsafe { object.cast::<*mut u8>().read() }
}
