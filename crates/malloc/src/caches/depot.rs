//! A cache's depot: free objects that no processor's array holds.
//!
//! **State.** A stack of pointers in a mapping of its own, which grows before an object is made and so never when one is freed.
//!
//! **From.** Bonwick & Adams 2001 §3.1: the last in is the first out; §3.6: the least that it held in an interval is what nobody needed.
//!
//! **Unsafe.** Keeps its stack in a mapping.

use core::ptr::null_mut;
use craton_os::{mapping, process};

/// All zeros are an empty one.
pub(super) struct Depot {
    first: *mut *mut u8,
    len: usize,
    capacity: usize,
    /// The least that it held since the interval began.
    least: usize,
}

impl Depot {
    pub(super) const EMPTY: Self = Self { first: null_mut(), len: 0, capacity: 0, least: 0 };

    /// Makes room for `objects` in all; `false` without memory.
    pub(super) fn reserve(&mut self, objects: usize) -> bool {
        if objects <= self.capacity {
            return true;
        }
        let Some(bytes) = (objects * size_of::<*mut u8>()).max(2 * self.bytes()).checked_next_multiple_of(process::page_size())
        else {
            return false;
        };
        let at = if self.capacity == 0 {
            mapping::map(bytes, 1)
        } else {
            mapping::remap(self.first as usize, self.bytes(), bytes)
        };
        let Some(at) = at else { return false };
        (self.first, self.capacity) = (at as *mut *mut u8, bytes / size_of::<*mut u8>());
        true
    }

    /// Adds an object, for which there is room.
    pub(super) fn push(&mut self, object: *mut u8) {
        assert!(self.len < self.capacity, "the depot has room for every object");
        // SAFETY: the mapping has so many places.
        unsafe { self.first.add(self.len).write(object) };
        self.len += 1;
    }

    /// Takes the object that came last.
    pub(super) fn pop(&mut self) -> Option<*mut u8> {
        self.len = self.len.checked_sub(1)?;
        self.least = self.least.min(self.len);
        // SAFETY: the first `len` places have been written.
        Some(unsafe { self.first.add(self.len).read() })
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Bytes of its mapping.
    pub(super) fn bytes(&self) -> usize {
        self.capacity * size_of::<*mut u8>()
    }

    /// An interval ends: how many objects nobody needed in it.
    pub(super) fn turn(&mut self) -> usize {
        core::mem::replace(&mut self.least, self.len)
    }

    /// The oldest objects are not kept apart: what is taken out for good is what came last. Gives room back that `objects` in all do not need.
    pub(super) fn shorten(&mut self, objects: usize) {
        let need = (objects * size_of::<*mut u8>()).next_multiple_of(process::page_size());
        if need > 0 && 4 * need <= self.bytes()
            && let Some(at) = mapping::remap(self.first as usize, self.bytes(), need)
        {
            (self.first, self.capacity) = (at as *mut *mut u8, need / size_of::<*mut u8>());
        }
    }

    /// Gives the mapping of an empty depot back.
    pub(super) fn unmap(&mut self) {
        assert!(self.len == 0, "a depot that goes is empty");
        if self.capacity > 0 {
            mapping::unmap(self.first as usize, self.bytes());
        }
        *self = Self::EMPTY;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_last_goes_first_while_the_stack_grows() {
        let mut depot = Depot::EMPTY;
        assert!(depot.pop().is_none());
        for i in 1..=5000usize {
            assert!(depot.reserve(i));
            depot.push(i as *mut u8);
        }
        assert_eq!((depot.turn(), depot.len()), (0, 5000));
        for i in (4001..=5000usize).rev() {
            assert_eq!(depot.pop(), Some(i as *mut u8));
        }
        depot.push(1 as *mut u8);
        assert_eq!((depot.turn(), depot.turn()), (4000, 4001), "the least that lay there in the interval");
        while depot.len() > 100 {
            depot.pop();
        }
        let before = depot.bytes();
        depot.shorten(100);
        assert!(depot.bytes() < before && depot.pop() == Some(100 as *mut u8));
        while depot.pop().is_some() {}
        depot.unmap();
        assert_eq!(depot.bytes(), 0);
    }
}
