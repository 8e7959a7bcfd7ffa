//! Restartable sequences: a few instructions on memory of the processor that a thread is on, which the kernel starts again when the
//! thread was interrupted in them.
//!
//! **What.** Arrays of pointers, one set for each processor, from which [`Rseq::pop`] takes and to which [`Rseq::push`] adds without a
//! lock and without an atomic instruction. A table says where each processor's memory is; whoever takes a pointer out of the table
//! and then calls [`Rseq::interrupt`] has that memory to himself.
//!
//! **From.** Linux's `rseq(2)`, by the registration that glibc (2.35 and later) makes for each thread. Of the registered area nothing
//! but the pointer to the critical section is ever written.
//!
//! **Units.** Processors are named by `mm_cid` where the kernel offers it: numbers from 0 that are as few as the process's threads or
//! its processors, whichever is less; else by the processor's own number.
//!
//! **Failure.** Without registration (an old C library, `GLIBC_TUNABLES=glibc.pthread.rseq=0`, valgrind, qemu-user) [`Rseq::find`] is
//! `None`. In a thread that was made past the C library and has no registration of its own, [`Rseq::is_registered`] says no: what it did
//! would not be restarted, and so must not be begun.
//!
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

/// Where each processor's memory is; null is none.
pub type Table = [AtomicPtr<u8>; PROCESSORS];

/// Where in its processor's memory an array lies, in bytes: two words of 32 bits (the count of its pointers, and how many there may be),
/// and the pointers themselves.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Where the two words are.
    pub counts: u32,
    /// Where the first pointer is.
    pub slots: u32,
}

/// From one processor's area of [`Counting`] arrays to the next one's, in bytes: a power of two.
pub const AREA: usize = 1 << AREA_SHIFT;
const AREA_SHIFT: u32 = 23;
/// Areas that there must be room for: Linux on x86-64 has no processor's number beyond.
pub const AREAS: usize = 8192;

/// Pointers that a [`Counting`] has room for.
pub const COUNTING: usize = 253;

/// An array that also counts what is ever taken from it, in the store that takes. All zeros hold nothing, and take nothing. Whoever
/// clears owner and capacity and then calls [`Rseq::interrupt`] has it to himself.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Counting {
    /// How many pointers there are in its lowest byte; in the others, how many were ever taken.
    pub word: AtomicU64,
    /// Who may take.
    pub owner: AtomicUsize,
    /// How many there may be, up to [`COUNTING`].
    pub capacity: AtomicU32,
    /// The user's own.
    pub note: AtomicU32,
    /// The pointers.
    pub slots: [AtomicPtr<u8>; COUNTING],
}

/// Where threads' registered areas are, and how processors are told apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rseq {
    /// From the thread pointer to the area.
    offset: isize,
    /// From the thread pointer to the processor's number in it.
    number: isize,
}

const _: () = assert!(cfg!(loom) || size_of::<Counting>() == 2048);

/// Fields of the kernel's `struct rseq`.
const CPU_ID_START: isize = 0;
const CPU_ID: isize = 4;
const MM_CID: isize = 24;
/// The kernel's AT_RSEQ_FEATURE_SIZE: how much of the area it keeps up. The C library's own size can be less.
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
        // SAFETY: where the C library has these two constants they have these types; the area of a size above 0 is the thread's, and
        // the kernel's feature size says what of it there is.
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

    /// Whether processors are named by the kernel's compact numbers.
    pub fn is_compact(&self) -> bool {
        self.number == self.offset + MM_CID
    }

    /// The processor that the calling thread is on, which may have changed when the caller looks at it; `None` without registration.
    pub fn processor(&self) -> Option<usize> {
        // SAFETY: `find` saw the area, which every thread of this C library has at the same place.
        let (registered, number) = unsafe { (arch::field(self.offset + CPU_ID), arch::field(self.number)) };
        (registered >= 0).then_some(number as usize).filter(|n| *n < PROCESSORS)
    }

    /// Whether the kernel restarts the calling thread's sequences: the area at its thread pointer is registered, and by this very thread. One
    /// whose thread-local memory the program made has an area of zeros, and one that shares its parent's has the parent's. Asks the
    /// system, if it may still be asked; else what the area says has to do.
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
        // glibc registers 32 bytes, or, from 2.40 on, all that the kernel keeps up.
        let known = [LEAST_SIZE, feature_size.next_multiple_of(LEAST_SIZE)].into_iter().any(|size| {
            // Asked to take the registration back for a signature that is not its own, the kernel says so if it is this one, and does
            // nothing; of another area, or none, it says that the argument is bad.
            // SAFETY: the call changes nothing, and touches no memory.
            let refused = unsafe { libc::syscall(libc::SYS_rseq, area, size, UNREGISTER, !arch::SIGNATURE) } != 0;
            refused && process::errno() == libc::EPERM
        });
        process::set_errno(saved);
        known
    }

    /// Takes the last pointer of this processor's array; null when it is empty, or the processor has no memory.
    ///
    /// # Safety
    /// Each entry of the table is null or the start of memory in which the place holds an array, used by these functions only, and
    /// mapped for ever.
    #[inline]
    pub unsafe fn pop(&self, table: &Table, place: Place) -> *mut u8 {
        // SAFETY: by the contract.
        unsafe { arch::pop(self.offset, self.number, table, place) }
    }

    /// Adds a pointer to this processor's array; `false` when it is full, or the processor has no memory.
    ///
    /// # Safety
    /// As [`Rseq::pop`].
    #[inline]
    pub unsafe fn push(&self, table: &Table, place: Place, pointer: *mut u8) -> bool {
        // SAFETY: by the contract.
        unsafe { arch::push(self.offset, self.number, table, place, pointer) }
    }

    /// Takes the last pointer of this processor's counting array; null when it is empty, or not the owner's.
    ///
    /// # Safety
    /// `at` lies in a mapping of [`AREAS`] areas for ever, as far from its start as an array from the start of its area. Arrays are
    /// used by these functions only. The calling thread is registered ([`Rseq::is_registered`]).
    #[inline(always)]
    pub unsafe fn take(&self, at: usize, owner: usize) -> *mut u8 {
        // SAFETY: by the contract.
        unsafe { arch::take(self, at, owner) }
    }

    /// Adds a pointer to this processor's counting array; `false` when it is full.
    ///
    /// # Safety
    /// As [`Rseq::take`].
    #[inline(always)]
    pub unsafe fn put(&self, at: usize, pointer: *mut u8) -> bool {
        // SAFETY: by the contract.
        unsafe { arch::put(self, at, pointer) }
    }

    /// Takes the last pointers of this processor's counting array, as many as there are and `into` has room for, in the order in which
    /// they were added; returns how many. None if the array is not the owner's.
    ///
    /// # Safety
    /// As [`Rseq::take`].
    pub unsafe fn take_many(&self, at: usize, owner: usize, into: &mut [*mut u8]) -> usize {
        // SAFETY: by the contract.
        unsafe { arch::take_many(self, at, owner, into) }
    }

    /// Adds pointers to this processor's counting array, in order, as many as there is room for; returns how many: the first ones.
    ///
    /// # Safety
    /// As [`Rseq::take`].
    pub unsafe fn put_many(&self, at: usize, from: &[*mut u8]) -> usize {
        // SAFETY: by the contract.
        unsafe { arch::put_many(self, at, from) }
    }

    /// Starts every critical section again that is under way on any processor; `false` when the system will not, or may not be asked
    /// any more. After it, nobody uses memory that was out of the table before it.
    pub fn interrupt(&self) -> bool {
        if !thp::may_ask() {
            return false;
        }
        // SAFETY: the calls touch no memory of ours.
        let call = |command: i32| unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 };
        call(PRIVATE_RSEQ) || (call(REGISTER_RSEQ) && call(PRIVATE_RSEQ))
    }
}

#[cfg(test)]
mod tests;
