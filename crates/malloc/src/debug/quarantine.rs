//! Freed buffers that wait before their memory serves again.
//!
//! **State.** A ring of addresses in a mapping of its own, the oldest first, and what they hold in bytes.
//!
//! **Failure.** Without the mapping nothing waits.
//!
//! **Unsafe.** Keeps the ring in a mapping.

use core::mem::offset_of;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use craton_os::{Mutex, mapping};

/// How many buffers ahead of the one that goes are fetched: as long as the memory takes.
const AHEAD: usize = 2;

/// Buffers that wait at the most.
const MOST: usize = 1 << 18;

/// Bytes of memory that wait at the most: the option `quarantine`.
pub(crate) static BYTES: AtomicUsize = AtomicUsize::new(16 << 20);

struct Ring {
    at: *mut (usize, usize),
    first: usize,
    len: usize,
    bytes: usize,
    /// How many of the first were there when the process was made as a copy of another.
    inherited: usize,
}

// SAFETY: the ring's memory is its own.
unsafe impl Send for Ring {}

static RING: Mutex<Ring> = Mutex::new(Ring { at: core::ptr::null_mut(), first: 0, len: 0, bytes: 0, inherited: 0 });

/// Where the ring is, for those who read the memory of another process.
pub(super) const WHERE: *const u8 = (&raw const RING).cast();
/// And what lies where in it.
pub(super) const SHAPE: [(&str, usize); 2] = [
    ("kit.ring.at", Mutex::<Ring>::SHAPE[1] + offset_of!(Ring, at)),
    ("kit.ring.bytes", MOST * size_of::<(usize, usize)>()),
];

/// Lets a buffer of so many bytes wait. `leave` is then told of each that has waited enough, outside of the lock.
pub(super) fn wait(address: usize, bytes: usize, mut leave: impl FnMut(usize)) {
    // One that is too large to wait does not make all others go.
    if bytes > BYTES.load(Relaxed) {
        return leave(address);
    }
    let mut ring = RING.lock();
    if ring.at.is_null() {
        let Some(at) = mapping::map(MOST * size_of::<(usize, usize)>(), 1) else {
            drop(ring);
            return leave(address);
        };
        ring.at = at as *mut _;
    }
    let end = (ring.first + ring.len) % MOST;
    // SAFETY: below the ring's length, and free: the ring is never full here.
    unsafe { ring.at.add(end).write((address, bytes)) };
    (ring.len, ring.bytes) = (ring.len + 1, ring.bytes + bytes);
    while ring.len == MOST || ring.len > 0 && ring.bytes > BYTES.load(Relaxed) {
        // SAFETY: the first of those that wait.
        let (address, bytes) = unsafe { ring.at.add(ring.first).read() };
        (ring.first, ring.len, ring.bytes) = ((ring.first + 1) % MOST, ring.len - 1, ring.bytes - bytes);
        ring.inherited = ring.inherited.saturating_sub(1);
        // SAFETY: one of those that wait.
        let soon = (ring.len > AHEAD).then(|| unsafe { ring.at.add((ring.first + AHEAD - 1) % MOST).read().0 });
        drop(ring);
        if let Some(soon) = soon {
            super::table::expect(soon);
        }
        leave(address);
        ring = RING.lock();
    }
}

/// Tells of each buffer that waits and that this process has freed itself. Under the lock: no lock but those of records may be taken.
pub(super) fn each_own(mut tell: impl FnMut(usize)) {
    let ring = RING.lock();
    for i in ring.inherited..ring.len {
        // SAFETY: one of those that wait.
        tell(unsafe { ring.at.add((ring.first + i) % MOST).read().0 });
    }
}

/// In the child of a fork, before the lock is given up: what waits is its parent's.
///
/// # Safety
/// The lock is held for a fork.
pub(super) unsafe fn forked() {
    // SAFETY: by the contract.
    let ring = unsafe { RING.held_for_fork() };
    ring.inherited = ring.len;
}

/// Where the ring lies: address and bytes; for the copy of a process.
pub(super) fn extent() -> (usize, usize) {
    // SAFETY: the copy has one thread, which holds the lock through no guard.
    (unsafe { RING.held_for_fork() }.at as usize, MOST * size_of::<(usize, usize)>())
}

pub(super) fn hold_for_fork(nested: bool) {
    RING.hold_for_fork(nested);
}

/// # Safety
/// As [`Mutex::release_after_fork`].
pub(super) unsafe fn release_after_fork() {
    // SAFETY: by the contract.
    unsafe { RING.release_after_fork() };
}
