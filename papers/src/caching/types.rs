//! Types of objects that have something to construct.
//!
//! **From.** Bonwick94 §2.1 and the second table of §5.1, with what a program has today: locks and condition variables of POSIX threads, heads
//! of lists, buffers that belong to the object.
//!
//! **What.** Construction makes what stays the same between uses; beginning a use sets what differs each time; at its end the object
//! is as it was constructed.
//!
//! **Unsafe.** Makes objects in raw memory.

use craton_lab::micro::calls::{Calls, System};
use std::mem::MaybeUninit;
use std::ptr;

/// A type of objects.
#[derive(Debug)]
pub struct Type {
    /// Its name.
    pub name: &'static str,
    /// What it is like.
    pub about: &'static str,
    /// Bytes.
    pub bytes: usize,
    /// Constructs one; says whether that could be done.
    pub construct: unsafe fn(*mut u8) -> bool,
    /// Destroys it.
    pub destroy: unsafe fn(*mut u8),
    /// Begins a use of it.
    pub begin: unsafe fn(*mut u8),
    /// Ends the use.
    pub end: unsafe fn(*mut u8),
}

/// A head of a doubly linked list, or an element.
#[repr(C)]
struct Links {
    next: *mut Links,
    prev: *mut Links,
}

impl Links {
    /// # Safety
    /// The place is the caller's.
    unsafe fn make_empty(at: *mut Self) {
        // SAFETY: the caller's promise.
        unsafe { at.write(Self { next: at, prev: at }) }
    }
}

type Mutex = MaybeUninit<libc::pthread_mutex_t>;
type Condition = MaybeUninit<libc::pthread_cond_t>;

/// Constructs it; says whether that could be done.
///
/// # Safety
/// The memory is the caller's, and as large as what is made.
unsafe fn make_mutex(at: *mut Mutex) -> bool {
    // SAFETY: the place is the caller's.
    unsafe { libc::pthread_mutex_init(at.cast(), ptr::null()) == 0 }
}

/// Destroys it.
///
/// # Safety
/// It was constructed, and nobody uses it any more.
unsafe fn end_mutex(at: *mut Mutex) {
    // SAFETY: it was made, and nobody holds it.
    unsafe { libc::pthread_mutex_destroy(at.cast()) };
}

/// Constructs it; says whether that could be done.
///
/// # Safety
/// The memory is the caller's, and as large as what is made.
unsafe fn make_condition(at: *mut Condition) -> bool {
    // SAFETY: the place is the caller's.
    unsafe { libc::pthread_cond_init(at.cast(), ptr::null()) == 0 }
}

/// Destroys it.
///
/// # Safety
/// It was constructed, and nobody uses it any more.
unsafe fn end_condition(at: *mut Condition) {
    // SAFETY: it was made, and nobody waits for it.
    unsafe { libc::pthread_cond_destroy(at.cast()) };
}

/// What each object begins with: what a use sets.
#[repr(C)]
struct Head {
    references: u64,
    owner: u64,
}

/// Sets what a use sets.
///
/// # Safety
/// The object is the caller's, and of a type here.
unsafe fn begin(object: *mut u8) {
    // SAFETY: each type begins with a head.
    unsafe { object.cast::<Head>().write_volatile(Head { references: 1, owner: 7 }) }
}

/// Ends the use.
///
/// # Safety
/// As [`begin`], which came before.
unsafe fn end(object: *mut u8) {
    // SAFETY: as above.
    unsafe { (&raw mut (*object.cast::<Head>()).references).write_volatile(0) }
}

#[repr(C)]
struct Locked {
    head: Head,
    mutex: Mutex,
    rest: [u64; 6],
}

#[repr(C)]
struct Waited {
    head: Head,
    mutex: Mutex,
    condition: Condition,
    waiters: Links,
}

/// Hash chains of a table, as a directory cache or a table of timers has them.
#[repr(C)]
struct Listed {
    head: Head,
    mutex: Mutex,
    lists: [Links; 32],
}

#[repr(C)]
struct End {
    mutex: Mutex,
    readable: Condition,
    writable: Condition,
    buffer: *mut u8,
}

#[repr(C)]
struct Pipe {
    head: Head,
    ends: [End; 2],
}

#[repr(C)]
struct Socket {
    head: Head,
    mutex: Mutex,
    conditions: [Condition; 3],
    queues: [Links; 6],
    options: [u32; 24],
    peer: *mut Socket,
}

/// A message of a stream: what it points to is a block of data of its own.
#[repr(C)]
struct Message {
    head: Head,
    links: Links,
    base: *mut u8,
    limit: *mut u8,
    read: *mut u8,
    write: *mut u8,
}

/// Bytes of a pipe's buffer, at each end.
const PIPE_BYTES: usize = 4096;
/// Bytes of a message's data.
const DATA_BYTES: usize = 256;

/// Constructs it; says whether that could be done.
///
/// # Safety
/// The memory is the caller's, and as large as what is made.
unsafe fn make_locked(object: *mut u8) -> bool {
    let object = object.cast::<Locked>();
    // SAFETY: the memory is the caller's.
    unsafe {
        (&raw mut (*object).rest).write([0; 6]);
        make_mutex(&raw mut (*object).mutex)
    }
}

/// Destroys it.
///
/// # Safety
/// It was constructed, and nobody uses it any more.
unsafe fn end_locked(object: *mut u8) {
    // SAFETY: it was constructed.
    unsafe { end_mutex(&raw mut (*object.cast::<Locked>()).mutex) }
}

/// Constructs it; says whether that could be done.
///
/// # Safety
/// The memory is the caller's, and as large as what is made.
unsafe fn make_waited(object: *mut u8) -> bool {
    let object = object.cast::<Waited>();
    // SAFETY: as above.
    unsafe {
        Links::make_empty(&raw mut (*object).waiters);
        make_mutex(&raw mut (*object).mutex) && make_condition(&raw mut (*object).condition)
    }
}

/// Destroys it.
///
/// # Safety
/// It was constructed, and nobody uses it any more.
unsafe fn end_waited(object: *mut u8) {
    let object = object.cast::<Waited>();
    // SAFETY: as above.
    unsafe {
        end_condition(&raw mut (*object).condition);
        end_mutex(&raw mut (*object).mutex);
    }
}

/// Constructs it; says whether that could be done.
///
/// # Safety
/// The memory is the caller's, and as large as what is made.
unsafe fn make_listed(object: *mut u8) -> bool {
    let object = object.cast::<Listed>();
    // SAFETY: as above.
    unsafe {
        for list in 0..32 {
            Links::make_empty((&raw mut (*object).lists).cast::<Links>().add(list));
        }
        make_mutex(&raw mut (*object).mutex)
    }
}

/// Destroys it.
///
/// # Safety
/// It was constructed, and nobody uses it any more.
unsafe fn end_listed(object: *mut u8) {
    let object = object.cast::<Listed>();
    // SAFETY: as above. A list that is not empty at the end would be a leak.
    unsafe {
        for list in 0..32 {
            let list = (&raw mut (*object).lists).cast::<Links>().add(list);
            debug_assert_eq!((*list).next, list);
        }
        end_mutex(&raw mut (*object).mutex);
    }
}

/// Constructs it; says whether that could be done.
///
/// # Safety
/// The memory is the caller's, and as large as what is made.
unsafe fn make_pipe(object: *mut u8) -> bool {
    let object = object.cast::<Pipe>();
    // SAFETY: as above.
    unsafe {
        let buffers = [System::malloc(PIPE_BYTES), System::malloc(PIPE_BYTES)];
        if buffers.iter().any(|buffer| buffer.is_null()) {
            buffers.into_iter().for_each(|buffer| System::free(buffer));
            return false;
        }
        for (at, buffer) in buffers.into_iter().enumerate() {
            let end = (&raw mut (*object).ends).cast::<End>().add(at);
            make_mutex(&raw mut (*end).mutex);
            make_condition(&raw mut (*end).readable);
            make_condition(&raw mut (*end).writable);
            (&raw mut (*end).buffer).write(buffer);
        }
    }
    true
}

/// Destroys it.
///
/// # Safety
/// It was constructed, and nobody uses it any more.
unsafe fn end_pipe(object: *mut u8) {
    let object = object.cast::<Pipe>();
    // SAFETY: as above.
    unsafe {
        for at in 0..2 {
            let end = (&raw mut (*object).ends).cast::<End>().add(at);
            end_condition(&raw mut (*end).writable);
            end_condition(&raw mut (*end).readable);
            end_mutex(&raw mut (*end).mutex);
            System::free((*end).buffer);
        }
    }
}

/// Constructs it; says whether that could be done.
///
/// # Safety
/// The memory is the caller's, and as large as what is made.
unsafe fn make_socket(object: *mut u8) -> bool {
    let object = object.cast::<Socket>();
    // SAFETY: as above.
    unsafe {
        for at in 0..6 {
            Links::make_empty((&raw mut (*object).queues).cast::<Links>().add(at));
        }
        (&raw mut (*object).options).write([0; 24]);
        (&raw mut (*object).peer).write(ptr::null_mut());
        make_mutex(&raw mut (*object).mutex)
            && (0..3).all(|at| make_condition((&raw mut (*object).conditions).cast::<Condition>().add(at)))
    }
}

/// Destroys it.
///
/// # Safety
/// It was constructed, and nobody uses it any more.
unsafe fn end_socket(object: *mut u8) {
    let object = object.cast::<Socket>();
    // SAFETY: as above.
    unsafe {
        for at in 0..3 {
            end_condition((&raw mut (*object).conditions).cast::<Condition>().add(at));
        }
        end_mutex(&raw mut (*object).mutex);
    }
}

/// Constructs it; says whether that could be done.
///
/// # Safety
/// The memory is the caller's, and as large as what is made.
unsafe fn make_message(object: *mut u8) -> bool {
    let object = object.cast::<Message>();
    let data = System::malloc(DATA_BYTES);
    // SAFETY: as above.
    unsafe {
        Links::make_empty(&raw mut (*object).links);
        (&raw mut (*object).base).write(data);
        (&raw mut (*object).limit).write(data.wrapping_add(DATA_BYTES));
        (&raw mut (*object).read).write(data);
        (&raw mut (*object).write).write(data);
    }
    !data.is_null()
}

/// Destroys it.
///
/// # Safety
/// It was constructed, and nobody uses it any more.
unsafe fn end_message(object: *mut u8) {
    // SAFETY: as above.
    unsafe { System::free((*object.cast::<Message>()).base) }
}

/// Does nothing.
///
/// # Safety
/// Any address is fine.
unsafe fn nothing(_: *mut u8) {}

/// Memory that has nothing to construct.
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
    ($name:literal, $about:literal, $of:ty, $construct:ident, $destroy:ident) => {
        Type {
            name: $name,
            about: $about,
            bytes: size_of::<$of>(),
            construct: $construct,
            destroy: $destroy,
            begin,
            end,
        }
    };
}

/// Every type.
pub static TYPES: [Type; 6] = [
    of!("mutex", "a mutex", Locked, make_locked, end_locked),
    of!("condition", "a mutex, a condition variable, a list", Waited, make_waited, end_waited),
    of!("lists", "a mutex and 32 heads of lists", Listed, make_listed, end_listed),
    of!("pipe", "two ends: mutex, two conditions, a buffer of 4 KiB each", Pipe, make_pipe, end_pipe),
    of!("socket", "a mutex, three conditions, six queues, options", Socket, make_socket, end_socket),
    of!("message", "a header with a block of 256 bytes", Message, make_message, end_message),
];

/// The type of that name.
pub fn find(name: &str) -> Option<&'static Type> {
    TYPES.iter().find(|of| of.name == name)
}
