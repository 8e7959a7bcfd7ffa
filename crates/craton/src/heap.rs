//! Heaps that are destroyed whole.
//!
//! ```
//! let heap = craton::Heap::new()?;
//! let mut greeting = heap.alloc_value(String::from("hello"))?; // freed, and its value dropped, by itself
//! greeting.push_str(", heap");
//! let numbers = heap.alloc_slice(&[1, 2, 3])?; // stays as long as the heap
//! numbers[0] = 7;
//! assert_eq!((greeting.as_str(), &*numbers), ("hello, heap", &[7, 2, 3][..]));
//! # Ok::<(), craton::Error>(())
//! ```
//!
//! Objects borrow their heap, so none outlives it:
//!
//! ```compile_fail,E0505
//! let heap = craton::Heap::new()?;
//! let value = heap.alloc_value(1)?;
//! drop(heap);
//! assert_eq!(*value, 1);
//! # Ok::<(), craton::Error>(())
//! ```
//!
//! **Unsafe.** Turns memory of the heap into values, and hands out raw memory.

use crate::error::Error;
use core::alloc::Layout;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use core::slice;
use craton_malloc::heaps::{self, Refused, api};
use craton_malloc::{Misuse, front};

pub use craton_malloc::heaps::Place;

/// A separate heap. Dropping it returns all its memory at once, without visiting objects; a lock
/// serves threads.
pub struct Heap {
    handle: usize,
}

/// Options of a heap.
///
/// ```
/// let heap = craton::HeapOptions::new().name("requests").limit(1 << 20).create()?;
/// assert_eq!((heap.stats().name(), heap.stats().limit_bytes), ("requests", 1 << 20));
/// # Ok::<(), craton::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct HeapOptions<'a> {
    name: &'a str,
    limit: usize,
    place: Place,
}

impl Default for HeapOptions<'_> {
    fn default() -> Self {
        Self { name: "", limit: 0, place: Place::Shared }
    }
}

impl<'a> HeapOptions<'a> {
    /// No name, no limit; hugepages shared with other objects.
    pub fn new() -> Self {
        Self::default()
    }

    /// In statistics: at most 31 bytes of printable ASCII without `"` and `\`.
    pub fn name(self, name: &'a str) -> Self {
        Self { name, ..self }
    }

    /// The most bytes of slabs (8 KiB or more) and of objects above 256 KiB, rounded up to 8 KiB;
    /// 0: no limit.
    pub fn limit(self, bytes: usize) -> Self {
        Self { limit: bytes, ..self }
    }

    /// Where the heap's memory lies.
    pub fn place(self, place: Place) -> Self {
        Self { place, ..self }
    }

    /// Fails with [`Error::NoMemory`], also at 65536 heaps.
    pub fn create(self) -> Result<Heap, Error> {
        let options = heaps::Options { name: self.name.as_bytes(), limit: self.limit, place: self.place };
        match api::create(options) {
            Ok(handle) => Ok(Heap { handle }),
            Err(Refused::NoMemory) => Err(Error::NoMemory),
            Err(Refused::Name) => Err(Error::Name),
        }
    }
}

impl Heap {
    /// A heap with the default options.
    pub fn new() -> Result<Self, Error> {
        HeapOptions::new().create()
    }

    /// A value, dropped and freed with the box.
    pub fn alloc_value<T>(&self, value: T) -> Result<HeapBox<'_, T>, Error> {
        let place = self.alloc(Layout::new::<T>())?.cast::<T>();
        // SAFETY: of the value's size and alignment.
        unsafe { place.write(value) };
        Ok(HeapBox { value: place, heap: self, owns: PhantomData })
    }

    /// A value that lives as long as the heap and is not dropped.
    #[allow(clippy::mut_from_ref)] // Each call returns separate memory.
    pub fn alloc_ref<T>(&self, value: T) -> Result<&mut T, Error> {
        let mut place = self.alloc(Layout::new::<T>())?.cast::<T>();
        // SAFETY: as in `alloc_value`; the memory stays while the heap is borrowed.
        unsafe {
            place.write(value);
            Ok(place.as_mut())
        }
    }

    /// A copy that lives as long as the heap.
    #[allow(clippy::mut_from_ref)]
    pub fn alloc_slice<T: Copy>(&self, from: &[T]) -> Result<&mut [T], Error> {
        let place = self.alloc(Layout::for_value(from))?.cast::<T>();
        // SAFETY: of the slice's size; only this call uses it while the heap is borrowed.
        unsafe {
            place.as_ptr().copy_from_nonoverlapping(from.as_ptr(), from.len());
            Ok(slice::from_raw_parts_mut(place.as_ptr(), from.len()))
        }
    }

    /// At least a byte. [`Error::NoMemory`] also for an alignment above 2 MiB.
    pub fn alloc(&self, layout: Layout) -> Result<NonNull<u8>, Error> {
        self.raw("Heap::alloc", layout, false)
    }

    /// Memory that reads as zeros.
    pub fn alloc_zeroed(&self, layout: Layout) -> Result<NonNull<u8>, Error> {
        self.raw("Heap::alloc_zeroed", layout, true)
    }

    fn raw(&self, call: &'static str, layout: Layout, zero: bool) -> Result<NonNull<u8>, Error> {
        let object = api::alloc(self.handle, layout.size(), layout.align(), zero);
        NonNull::new(object.unwrap_or_else(|m| self.broken(call, m))).ok_or(Error::NoMemory)
    }

    /// Frees raw memory.
    ///
    /// # Safety
    /// It is this heap's, not freed, and no longer used.
    pub unsafe fn dealloc(&self, pointer: NonNull<u8>) {
        // SAFETY: by the contract.
        if let Err(misuse) = unsafe { api::free(self.handle, pointer.as_ptr()) } {
            front::die("Heap::dealloc", pointer.as_ptr(), misuse);
        }
    }

    /// Resizes memory of alignment at most 16; contents stay as far as they fit. After an error it
    /// is unchanged.
    ///
    /// # Safety
    /// It is this heap's and not freed; if another pointer is returned, the old one is no longer
    /// used.
    pub unsafe fn realloc(&self, pointer: NonNull<u8>, size: usize) -> Result<NonNull<u8>, Error> {
        // SAFETY: by the contract.
        match unsafe { api::realloc(self.handle, pointer.as_ptr(), size) } {
            Ok(new) => NonNull::new(new).ok_or(Error::NoMemory),
            Err(misuse) => front::die("Heap::realloc", pointer.as_ptr(), misuse),
        }
    }

    /// Counts of the heap.
    pub fn stats(&self) -> HeapStats {
        let counts = api::stats(self.handle).unwrap_or_else(|m| self.broken("Heap::stats", m));
        HeapStats::of(&counts)
    }

    #[cold]
    fn broken(&self, call: &'static str, misuse: Misuse) -> ! {
        front::die(call, self.handle as *mut u8, misuse)
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        if let Err(misuse) = api::destroy(self.handle) {
            self.broken("Heap::drop", misuse);
        }
    }
}

impl fmt::Debug for Heap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stats = self.stats();
        f.debug_struct("Heap").field("name", &stats.name()).field("objects", &stats.objects).finish_non_exhaustive()
    }
}

/// Of each row of the table but the heap's.
macro_rules! heap_stats {
    ($id:ident: $unit_of_id:ident, $text_of_id:literal; $($name:ident: $unit:ident, $text:literal;)*) => {
        /// Counts of a heap.
        #[derive(Clone, Copy, Debug)]
        #[non_exhaustive]
        pub struct HeapStats {
            $(#[doc = $text] pub $name: u64,)*
            name: [u8; heaps::NAME_MAX + 1],
        }

        impl HeapStats {
            fn of(counts: &heaps::OwnStats) -> Self {
                Self { $($name: counts.$name,)* name: counts.name }
            }
        }
    };
}

craton_tables::counters!(heap, heap_stats);

impl HeapStats {
    /// As [`HeapOptions::name`] set it.
    pub fn name(&self) -> &str {
        let len = self.name.iter().position(|b| *b == 0).unwrap_or(self.name.len());
        core::str::from_utf8(&self.name[..len]).unwrap_or_default()
    }
}

/// A value, dropped and freed with its box.
pub struct HeapBox<'h, T> {
    value: NonNull<T>,
    heap: &'h Heap,
    owns: PhantomData<T>,
}

// SAFETY: the box owns its value; any thread may free memory of the heap.
unsafe impl<T: Send> Send for HeapBox<'_, T> {}
// SAFETY: `&HeapBox` gives only `&T`.
unsafe impl<T: Sync> Sync for HeapBox<'_, T> {}

impl<'h, T> HeapBox<'h, T> {
    /// Moves the value off the heap.
    pub fn into_inner(self) -> T {
        // SAFETY: read once: the box's drop does not run.
        unsafe {
            let value = self.value.read();
            self.heap.dealloc(self.value.cast());
            core::mem::forget(self);
            value
        }
    }

    /// The value, not dropped, for as long as the heap.
    pub fn leak(self) -> &'h mut T {
        let mut value = self.value;
        core::mem::forget(self);
        // SAFETY: the box's value, whose memory stays while the heap is borrowed.
        unsafe { value.as_mut() }
    }
}

impl<T> Deref for HeapBox<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the box's value.
        unsafe { self.value.as_ref() }
    }
}

impl<T> DerefMut for HeapBox<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the box's value, exclusively borrowed.
        unsafe { self.value.as_mut() }
    }
}

impl<T> Drop for HeapBox<'_, T> {
    fn drop(&mut self) {
        // SAFETY: the box's value, dropped once.
        unsafe {
            self.value.drop_in_place();
            self.heap.dealloc(self.value.cast());
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for HeapBox<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
