//! A list of free objects, linked through their first words.
//!
//! **Unsafe.** Reads and writes the first word of free objects.

/// Free objects on their way between a slab and a cache. It owns them; dropped, it leaks them.
#[derive(Debug)]
#[must_use]
pub struct Chain {
    head: *mut u8,
    tail: *mut u8,
    len: u32,
}

// SAFETY: a chain owns its objects, like a box does.
unsafe impl Send for Chain {}

impl Default for Chain {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl Chain {
    pub const EMPTY: Self = Self { head: core::ptr::null_mut(), tail: core::ptr::null_mut(), len: 0 };

    /// Takes over `len` objects linked from `head` to `tail`.
    /// # Safety
    /// `head` begins a list of exactly `len` objects whose last, `tail`, has a null link; both are
    /// null for an empty list. The caller gives all of them up.
    pub unsafe fn from_raw(head: *mut u8, tail: *mut u8, len: u32) -> Self {
        Self { head, tail, len }
    }

    /// Takes over `len` ≥ 1 objects linked from `head` on, the last with a null link.
    /// # Safety
    /// As [`Chain::from_raw`]. The chain does not know its last object: append nothing to it.
    pub unsafe fn from_head(head: *mut u8, len: u32) -> Self {
        Self { head, tail: core::ptr::null_mut(), len }
    }

    /// The first object; null when there is none.
    pub fn head(&self) -> *mut u8 {
        self.head
    }

    /// Releases the list: its first object (null when empty) and its length.
    pub fn into_raw(self) -> (*mut u8, u32) {
        (self.head, self.len)
    }

    pub(crate) fn last(&self) -> *mut u8 {
        self.tail
    }

    pub fn len(&self) -> u32 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends a free object: objects leave in the order of arrival.
    /// # Safety
    /// `object` is aligned to 16, at least 16 bytes long, free, and given up by the caller.
    #[inline]
    pub unsafe fn push(&mut self, object: *mut u8) {
        debug_assert_eq!(self.tail.is_null(), self.len == 0, "the end of a chain from its head is not known");
        // SAFETY: the object and the last one in the chain are ours by the contract.
        unsafe {
            link(object, core::ptr::null_mut());
            if self.tail.is_null() {
                self.head = object;
            } else {
                link(self.tail, object);
            }
        }
        self.tail = object;
        self.len += 1;
    }

    /// Appends `n` ≥ 1 objects, `bytes` apart, and passes each to `each`.
    /// # Safety
    /// As [`Chain::push`], for each of them.
    #[inline]
    pub(crate) unsafe fn push_row(&mut self, first: *mut u8, bytes: usize, n: u16, each: &impl Fn(*mut u8)) {
        // SAFETY: `n` objects lie in the row.
        let last = unsafe { first.add(bytes * usize::from(n - 1)) };
        let mut at = first;
        while at != last {
            // SAFETY: the row goes on until `last`.
            unsafe {
                let next = at.add(bytes);
                link(at, next);
                each(at);
                at = next;
            }
        }
        each(at);
        // SAFETY: the row is linked from `first` to `at`, which is ours.
        unsafe {
            link(at, core::ptr::null_mut());
            self.append(first, at, n.into());
        }
    }

    /// Appends `n` ≥ 1 free objects, linked from `first` to `last`.
    /// # Safety
    /// As [`Chain::from_raw`].
    #[inline]
    pub unsafe fn append(&mut self, first: *mut u8, last: *mut u8, n: u32) {
        debug_assert_eq!(self.tail.is_null(), self.len == 0, "the end of a chain from its head is not known");
        if self.tail.is_null() {
            self.head = first;
        } else {
            // SAFETY: the last object is the chain's.
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
        // SAFETY: the chain owns `len` > 0 linked objects, of which this is the first.
        self.head = unsafe { next(object) };
        if self.head.is_null() {
            self.tail = self.head;
        }
        self.len -= 1;
        Some(object)
    }
}

/// Writes the link of a free object.
/// # Safety
/// `object` is a free object's first byte, aligned to 8, and the caller owns it.
#[inline]
pub(crate) unsafe fn link(object: *mut u8, to: *mut u8) {
    // SAFETY: by the contract; a free object's first word is ours.
    unsafe { object.cast::<*mut u8>().write(to) }
}

/// Reads the link of a free object.
/// # Safety
/// As [`link`], and the link has been written.
#[inline]
pub(crate) unsafe fn next(object: *mut u8) -> *mut u8 {
    // SAFETY: by the contract.
    unsafe { object.cast::<*mut u8>().read() }
}
