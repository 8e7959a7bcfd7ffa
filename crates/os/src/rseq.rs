//! Restartable sequences: per-CPU arrays of pointers without locks or atomic instructions.
//!
//! **From.** Linux's `rseq(2)`, registered by glibc 2.35 for each thread. The kernel restarts
//! interrupted sections. A thread that removes a table's entry and calls [`Rseq::interrupt`] owns
//! its memory.
//! **Units.** CPUs by `mm_cid` (below the lesser of threads and CPUs), else by CPU number.
//! **Failure.** [`Rseq::find`] is `None` without registration
//! (`GLIBC_TUNABLES=glibc.pthread.rseq=0`, valgrind, qemu-user).
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

/// CPUs beyond go without.
pub const PROCESSORS: usize = 1024;

/// Null: no memory.
pub type Table = [AtomicPtr<u8>; PROCESSORS];

/// Byte offset of length, capacity (32 bits each), pointers.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub counts: u32,
    pub slots: u32,
}

/// Between two CPUs' [`Counting`] arrays.
pub const AREA: usize = 1 << AREA_SHIFT;
const AREA_SHIFT: u32 = 23;
/// Linux on x86-64 has no higher CPU number.
pub const AREAS: usize = 8192;

pub const COUNTING: usize = 253;

/// Zeros yield nothing. Clearing owner and capacity, then [`Rseq::interrupt`], makes it the
/// caller's.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Counting {
    /// Lowest byte: length; others: pointers ever taken.
    pub word: AtomicU64,
    /// Only its requests may take pointers.
    pub owner: AtomicUsize,
    /// At most [`COUNTING`].
    pub capacity: AtomicU32,
    pub note: AtomicU32,
    pub slots: [AtomicPtr<u8>; COUNTING],
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rseq {
    /// From the thread pointer.
    offset: isize,
    /// The CPU number, from the thread pointer.
    number: isize,
}

const _: () = assert!(cfg!(loom) || size_of::<Counting>() == 2048);

const CPU_ID_START: isize = 0;
const CPU_ID: isize = 4;
const MM_CID: isize = 24;
/// AT_RSEQ_FEATURE_SIZE.
const FEATURE_SIZE: u64 = 27;
const WITH_MM_CID: u64 = 28;

const LEAST_SIZE: u32 = 32;
const UNREGISTER: i32 = 1;

const REGISTER_RSEQ: i32 = 1 << 8;
const PRIVATE_RSEQ: i32 = 1 << 7;

impl Rseq {
    pub fn find() -> Option<Self> {
        let (offset, size) = (weak!("__rseq_offset") as *const isize, weak!("__rseq_size") as *const u32);
        // SAFETY: the C library's two constants have these types; an area of size > 0 is the
        // thread's.
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

    /// By `mm_cid`.
    pub fn is_compact(&self) -> bool {
        self.number == self.offset + MM_CID
    }

    /// Possibly stale; `None` without registration.
    pub fn processor(&self) -> Option<usize> {
        // SAFETY: `find` saw the area; every thread of this C library has it there.
        let (registered, number) = unsafe { (arch::field(self.offset + CPU_ID), arch::field(self.number)) };
        (registered >= 0).then_some(number as usize).filter(|n| *n < PROCESSORS)
    }

    /// False in a thread cloned without the C library: nothing would restart its sequences. Trusts
    /// the area if system calls are restricted.
    pub fn is_registered(&self) -> bool {
        // SAFETY: as in `processor`.
        if unsafe { arch::field(self.offset + CPU_ID) } < 0 {
            return false;
        }
        if !thp::may_query() {
            return true;
        }
        let saved = process::errno();
        // SAFETY: a query.
        let feature_size = unsafe { libc::getauxval(FEATURE_SIZE) } as u32;
        let area = thread::pointer().wrapping_add_signed(self.offset);
        // glibc registers 32 bytes; from 2.40 on, all that the kernel uses.
        let known = [LEAST_SIZE, feature_size.next_multiple_of(LEAST_SIZE)].into_iter().any(|size| {
            // SAFETY: a wrong signature changes nothing; its error tells this area from others.
            let refused = unsafe { libc::syscall(libc::SYS_rseq, area, size, UNREGISTER, !arch::SIGNATURE) } != 0;
            refused && process::errno() == libc::EPERM
        });
        process::set_errno(saved);
        known
    }

    /// Null: empty, or the CPU has no memory.
    /// # Safety
    /// Each entry of the table is null or permanent memory, with an array at the place that only
    /// these functions use.
    #[inline]
    pub unsafe fn pop(&self, table: &Table, place: Place) -> *mut u8 {
        // SAFETY: by the contract.
        unsafe { arch::pop(self.offset, self.number, table, place) }
    }

    /// `false`: full, or the CPU has no memory.
    /// # Safety
    /// As [`Rseq::pop`].
    #[inline]
    pub unsafe fn push(&self, table: &Table, place: Place, pointer: *mut u8) -> bool {
        // SAFETY: by the contract.
        unsafe { arch::push(self.offset, self.number, table, place, pointer) }
    }

    /// Null: empty, or not the owner's.
    /// # Safety
    /// `at` is an array in a permanent mapping of [`AREAS`] areas that only these functions use.
    /// The thread is [registered](Rseq::is_registered).
    #[inline(always)]
    pub unsafe fn pop_counted(&self, at: usize, owner: usize) -> *mut u8 {
        // SAFETY: by the contract.
        unsafe { arch::pop_counted(self, at, owner) }
    }

    /// `false`: full.
    ///
    /// # Safety
    /// As [`Rseq::pop_counted`].
    #[inline(always)]
    pub unsafe fn push_counted(&self, at: usize, pointer: *mut u8) -> bool {
        // SAFETY: by the contract.
        unsafe { arch::push_counted(self, at, pointer) }
    }

    /// Returns how many, 0 if not the owner's.
    /// # Safety
    /// As [`Rseq::pop_counted`].
    pub unsafe fn pop_many(&self, at: usize, owner: usize, into: &mut [*mut u8]) -> usize {
        // SAFETY: by the contract.
        unsafe { arch::pop_many(self, at, owner, into) }
    }

    /// Returns how many.
    /// # Safety
    /// As [`Rseq::pop_counted`].
    pub unsafe fn push_many(&self, at: usize, from: &[*mut u8]) -> usize {
        // SAFETY: by the contract.
        unsafe { arch::push_many(self, at, from) }
    }

    /// Restarts all sections: none still uses memory removed from the table. `false`: refused.
    pub fn interrupt(&self) -> bool {
        if !thp::may_query() {
            return false;
        }
        // SAFETY: touches no memory.
        let call = |command: i32| unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 };
        call(PRIVATE_RSEQ) || (call(REGISTER_RSEQ) && call(PRIVATE_RSEQ))
    }
}

#[cfg(test)]
mod tests;
