//! Restartable sequences: per-CPU arrays of pointers without locks or atomic instructions.
//!
//! **What.** [`Rseq::pop`] and [`Rseq::push`] run a few instructions on the current CPU's memory;
//! the kernel restarts them when it interrupts the thread. A table maps a CPU to its memory. A
//! thread that removes a pointer from the table and then calls [`Rseq::interrupt`] owns that
//! memory.
//! **From.** Linux's `rseq(2)`, through the registration that glibc 2.35 and later makes for each
//! thread. We write only the registered area's pointer to the critical section.
//! **Units.** CPUs are numbered by `mm_cid` (0 up to the lesser of threads and CPUs), else by CPU
//! number.
//! **Failure.** [`Rseq::find`] is `None` without registration (old C library,
//! `GLIBC_TUNABLES=glibc.pthread.rseq=0`, valgrind, qemu-user). [`Rseq::is_registered`] is false in
//! a thread cloned past the C library without its registration: nothing would restart its
//! sequences, so it must begin none.
//! **Unsafe.** Critical sections are assembly; calls `membarrier`.

use crate::{process, thp, thread, weak};
use craton_base::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize};

#[cfg(not(all(target_arch = "x86_64", not(feature = "portable"))))]
mod portable;
#[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
mod x86_64;

#[cfg(not(all(target_arch = "x86_64", not(feature = "portable"))))]
use portable as arch;
#[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
use x86_64 as arch;

/// Processors that a table has entries for; those beyond go without.
pub const PROCESSORS: usize = 1024;

/// Where each CPU's memory is; null for none.
pub type Table = [AtomicPtr<u8>; PROCESSORS];

/// Byte offset of an array in a CPU's memory: length, capacity (32 bits each), pointers.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Where the two words are.
    pub counts: u32,
    /// Where the first pointer is.
    pub slots: u32,
}

/// Bytes from one CPU's area of [`Counting`] arrays to the next: a power of two.
pub const AREA: usize = 1 << AREA_SHIFT;
const AREA_SHIFT: u32 = 23;
/// Areas of a mapping: Linux on x86-64 has no higher CPU number.
pub const AREAS: usize = 8192;

/// Pointers that a [`Counting`] has room for.
pub const COUNTING: usize = 253;

/// An array that also counts takes, in the store that takes. Zeros hold nothing and yield nothing.
/// Clearing owner and capacity and then calling [`Rseq::interrupt`] makes it the caller's.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Counting {
    /// How many pointers there are in its lowest byte; in the others, how many were ever taken.
    pub word: AtomicU64,
    /// The cache whose requests may take pointers.
    pub owner: AtomicUsize,
    /// How many there may be, up to [`COUNTING`].
    pub capacity: AtomicU32,
    /// The user's own.
    pub note: AtomicU32,
    /// The pointers.
    pub slots: [AtomicPtr<u8>; COUNTING],
}

/// Where threads' registered areas are, and how CPUs are numbered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rseq {
    /// From the thread pointer to the area.
    offset: isize,
    /// From the thread pointer to the CPU number in it.
    number: isize,
}

const _: () = assert!(cfg!(loom) || size_of::<Counting>() == 2048);

/// Fields of the kernel's `struct rseq`.
const CPU_ID_START: isize = 0;
const CPU_ID: isize = 4;
const MM_CID: isize = 24;
/// The kernel's AT_RSEQ_FEATURE_SIZE: bytes of the area in use. The C library's size can be less.
const FEATURE_SIZE: u64 = 27;
const WITH_MM_CID: u64 = 28;

/// Bytes of an area at the least.
const LEAST_SIZE: u32 = 32;
const UNREGISTER: i32 = 1;

const REGISTER_RSEQ: i32 = 1 << 8;
const PRIVATE_RSEQ: i32 = 1 << 7;

impl Rseq {
    /// The C library's registration, if the calling thread has one.
    pub fn find() -> Option<Self> {
        let (offset, size) = (weak!("__rseq_offset") as *const isize, weak!("__rseq_size") as *const u32);
        // SAFETY: where the C library has these two constants they have these types; an area of
        // size > 0 is the thread's, and the kernel's feature size bounds its fields.
        unsafe {
            if !arch::SUPPORTED || offset.is_null() || size.is_null() || *size == 0 {
                return None;
            }
            let offset = *offset;
            if arch::field(offset + CPU_ID) < 0 {
                return None;
            }
            let number = if libc::getauxval(FEATURE_SIZE) >= WITH_MM_CID { MM_CID } else { CPU_ID_START };
            Some(Self { offset, number: offset + number })
        }
    }

    /// Whether CPUs have the kernel's compact numbers.
    pub fn is_compact(&self) -> bool {
        self.number == self.offset + MM_CID
    }

    /// The CPU of the calling thread, possibly stale; `None` without registration.
    pub fn processor(&self) -> Option<usize> {
        // SAFETY: `find` saw the area, which every thread of this C library has at the same place.
        let (registered, number) = unsafe { (arch::field(self.offset + CPU_ID), arch::field(self.number)) };
        (registered >= 0).then_some(number as usize).filter(|n| *n < PROCESSORS)
    }

    /// Whether the kernel restarts the calling thread's sequences: this thread registered the area.
    /// A thread with thread-local memory made by the program has zeros there; one that shares its
    /// parent's has the parent's. Asks the kernel; trusts the area if system calls are restricted.
    pub fn is_registered(&self) -> bool {
        // SAFETY: as in `processor`.
        if unsafe { arch::field(self.offset + CPU_ID) } < 0 {
            return false;
        }
        if !thp::may_ask() {
            return true;
        }
        let saved = process::errno();
        // SAFETY: a query of an auxiliary value.
        let feature_size = unsafe { libc::getauxval(FEATURE_SIZE) } as u32;
        let area = thread::pointer().wrapping_add_signed(self.offset);
        // glibc registers 32 bytes; from 2.40 on, all that the kernel uses.
        let known = [LEAST_SIZE, feature_size.next_multiple_of(LEAST_SIZE)].into_iter().any(|size| {
            // Unregistering with a wrong signature has one error for this area, another for others.
            // SAFETY: the call changes nothing, and touches no memory.
            let refused = unsafe { libc::syscall(libc::SYS_rseq, area, size, UNREGISTER, !arch::SIGNATURE) } != 0;
            refused && process::errno() == libc::EPERM
        });
        process::set_errno(saved);
        known
    }

    /// Takes the last pointer of this CPU's array; null when it is empty, or the CPU has no memory.
    /// # Safety
    /// Each entry of the table is null or the start of memory in which the place holds an array,
    /// used by these functions only, and mapped for ever.
    #[inline]
    pub unsafe fn pop(&self, table: &Table, place: Place) -> *mut u8 {
        // SAFETY: by the contract.
        unsafe { arch::pop(self.offset, self.number, table, place) }
    }

    /// Adds a pointer to this CPU's array; `false` when it is full, or the CPU has no memory.
    /// # Safety
    /// As [`Rseq::pop`].
    #[inline]
    pub unsafe fn push(&self, table: &Table, place: Place, pointer: *mut u8) -> bool {
        // SAFETY: by the contract.
        unsafe { arch::push(self.offset, self.number, table, place, pointer) }
    }

    /// Takes the last pointer of this CPU's counting array; null when empty or not the owner's.
    /// # Safety
    /// `at` lies in a permanent mapping of [`AREAS`] areas, as far from its start as an array in
    /// its area. Only these functions use arrays. The calling thread is
    /// [registered](Rseq::is_registered).
    #[inline(always)]
    pub unsafe fn take(&self, at: usize, owner: usize) -> *mut u8 {
        // SAFETY: by the contract.
        unsafe { arch::take(self, at, owner) }
    }

    /// Adds a pointer to this CPU's counting array; `false` when it is full.
    /// # Safety
    /// As [`Rseq::take`].
    #[inline(always)]
    pub unsafe fn put(&self, at: usize, pointer: *mut u8) -> bool {
        // SAFETY: by the contract.
        unsafe { arch::put(self, at, pointer) }
    }

    /// Takes the last pointers of this CPU's counting array, in the order of arrival, as many as
    /// fit into `into`; returns how many. None if the array is not the owner's.
    /// # Safety
    /// As [`Rseq::take`].
    pub unsafe fn take_many(&self, at: usize, owner: usize, into: &mut [*mut u8]) -> usize {
        // SAFETY: by the contract.
        unsafe { arch::take_many(self, at, owner, into) }
    }

    /// Adds as many pointers as fit to this CPU's counting array, the first ones; returns how many.
    /// # Safety
    /// As [`Rseq::take`].
    pub unsafe fn put_many(&self, at: usize, from: &[*mut u8]) -> usize {
        // SAFETY: by the contract.
        unsafe { arch::put_many(self, at, from) }
    }

    /// Restarts all critical sections under way on any CPU: none still uses memory removed from the
    /// table. `false` if the system refuses or may not be asked.
    pub fn interrupt(&self) -> bool {
        if !thp::may_ask() {
            return false;
        }
        // SAFETY: the calls touch no memory.
        let call = |command: i32| unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 };
        call(PRIVATE_RSEQ) || (call(REGISTER_RSEQ) && call(PRIVATE_RSEQ))
    }
}

#[cfg(test)]
mod tests;
