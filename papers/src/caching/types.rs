//! Types of objects with something to construct (Bonwick94 §2.1, second table of §5.1). A use sets
//! the head, and restores the constructed state.
//!
//! **Unsafe.** Constructs objects in raw memory.

use craton_lab::micro::calls::{Calls, System};
use std::ptr;

#[derive(Debug)]
pub struct Type {
    pub name: &'static str,
    pub about: &'static str,
    pub bytes: usize,
    /// False: refused.
    pub construct: unsafe fn(*mut u8) -> bool,
    pub destroy: unsafe fn(*mut u8),
    pub begin: unsafe fn(*mut u8),
    pub end: unsafe fn(*mut u8),
}

/// Each object begins with it.
#[repr(C)]
struct Head {
    references: u64,
    owner: u64,
}

#[repr(C)]
struct Links {
    next: *mut Links,
    prev: *mut Links,
}

#[repr(C)]
struct Shape<const M: usize, const C: usize, const L: usize, const B: usize, const W: usize> {
    head: Head,
    mutexes: [libc::pthread_mutex_t; M],
    conditions: [libc::pthread_cond_t; C],
    lists: [Links; L],
    buffers: [*mut u8; B],
    words: [u64; W],
}

/// The array may be uninitialized.
fn each<T, const N: usize>(array: *mut [T; N]) -> impl Iterator<Item = *mut T> {
    (0..N).map(move |at| array.cast::<T>().wrapping_add(at))
}

impl<const M: usize, const C: usize, const L: usize, const B: usize, const W: usize> Shape<M, C, L, B, W> {
    /// Buffers have `BYTES`.
    ///
    /// # Safety
    /// The memory has the size of a shape.
    unsafe fn construct<const BYTES: usize>(object: *mut u8) -> bool {
        let object = object.cast::<Self>();
        // SAFETY: within the memory. A refused buffer is null, which `free` accepts.
        unsafe {
            each(&raw mut (*object).buffers).for_each(|buffer| buffer.write(System::malloc(BYTES)));
            if each(&raw mut (*object).buffers).any(|buffer| (*buffer).is_null()) {
                each(&raw mut (*object).buffers).for_each(|buffer| System::free(*buffer));
                return false;
            }
            each(&raw mut (*object).lists).for_each(|list| list.write(Links { next: list, prev: list }));
            (&raw mut (*object).words).write([0; W]);
            each(&raw mut (*object).mutexes).all(|mutex| libc::pthread_mutex_init(mutex, ptr::null()) == 0)
                && each(&raw mut (*object).conditions).all(|of| libc::pthread_cond_init(of, ptr::null()) == 0)
        }
    }

    /// # Safety
    /// It was constructed, and is given up.
    unsafe fn destroy(object: *mut u8) {
        let object = object.cast::<Self>();
        // SAFETY: by the contract. A list that is not empty would be a leak.
        unsafe {
            each(&raw mut (*object).lists)
                .for_each(|list| debug_assert_eq!(((*list).next, (*list).prev), (list, list)));
            each(&raw mut (*object).conditions).for_each(|of| _ = libc::pthread_cond_destroy(of));
            each(&raw mut (*object).mutexes).for_each(|mutex| _ = libc::pthread_mutex_destroy(mutex));
            each(&raw mut (*object).buffers).for_each(|buffer| System::free(*buffer));
        }
    }
}

/// # Safety
/// The object is of a type here.
unsafe fn begin(object: *mut u8) {
    // SAFETY: each type begins with a head.
    unsafe { object.cast::<Head>().write_volatile(Head { references: 1, owner: 7 }) }
}

/// # Safety
/// As [`begin`], which came before.
unsafe fn end(object: *mut u8) {
    // SAFETY: as above.
    unsafe { (&raw mut (*object.cast::<Head>()).references).write_volatile(0) }
}

/// # Safety
/// Any address.
unsafe fn nothing(_: *mut u8) {}

pub(super) static NOTHING: Type = Type {
    name: "nothing",
    about: "memory",
    bytes: 8,
    construct: |_| true,
    destroy: nothing,
    begin: nothing,
    end: nothing,
};

macro_rules! of {
    ($name:literal, $about:literal, $of:ty, $buffer:literal) => {
        Type {
            name: $name,
            about: $about,
            bytes: size_of::<$of>(),
            construct: <$of>::construct::<$buffer>,
            destroy: <$of>::destroy,
            begin,
            end,
        }
    };
}

pub static TYPES: [Type; 6] = [
    of!("mutex", "a mutex", Shape<1, 0, 0, 0, 6>, 0),
    of!("condition", "a mutex, a condition variable, a list", Shape<1, 1, 1, 0, 0>, 0),
    of!("lists", "a mutex and 32 heads of lists", Shape<1, 0, 32, 0, 0>, 0),
    of!("pipe", "two ends: mutex, two conditions, a buffer of 4 KiB each", Shape<2, 4, 0, 2, 0>, 4096),
    of!("socket", "a mutex, three conditions, six queues, options", Shape<1, 3, 6, 0, 13>, 0),
    of!("message", "a header with a block of 256 bytes", Shape<0, 0, 1, 1, 3>, 256),
];

pub fn find(name: &str) -> Option<&'static Type> {
    TYPES.iter().find(|of| of.name == name)
}
