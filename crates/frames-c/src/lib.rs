//! The C face of page frames, for kernels: `include/craton_frames.h` documents it.
//!
//! All state lies in the caller's buffer, each array at a cache line:
//! ```text
//! | zone | rows | children | trees | index | locals |
//! ```
//! **Unsafe.** Pointers of C.
#![no_std]

use core::ffi::{c_char, c_int, c_long, c_uint};
use craton_frames::{Config, Error, Init, Kind, Local, Metadata, Request, Sizes, Standard, Zone};

const LINE: usize = 64;

const NO_MEMORY: c_int = 1;
const BAD_ORDER: c_int = 2;
const OUT_OF_RANGE: c_int = 3;
const MISALIGNED: c_int = 4;
const NOT_ALLOCATED: c_int = 5;
const IN_USE: c_int = 6;
const OFFLINE: c_int = 7;
const NOT_OFFLINE: c_int = 8;
const BAD_CPU: c_int = 9;
const BAD_BUFFER: c_int = 10;
const BAD_SIZE: c_int = 11;
const BROKEN: c_int = 12;

const TEXTS: [&core::ffi::CStr; 13] = [
    c"no error",
    c"no free block of that order",
    c"the order is above 10, the largest",
    c"not all of the frames lie in the range",
    c"the frame is no multiple of the order's frames",
    c"not all of the frames are allocated: freed twice, or of another order",
    c"not all of the frames are free",
    c"the frame lies in a huge frame that was reclaimed",
    c"the huge frame was not reclaimed",
    c"the CPU is not below the number of CPUs",
    c"the buffer is missing, too short, or no multiple of 64",
    c"a state has 1 to 2^36 - 1 frames and 1 to 2^16 CPUs",
    c"the state contradicts itself",
];

pub struct State {
    zone: Zone<'static>,
}

#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    pub frames: usize,
    pub free_frames: usize,
    pub free_huge_frames: usize,
    pub offline_huge_frames: usize,
}

/// The offsets of the arrays, and the end.
fn offsets(sizes: &Sizes) -> Option<[usize; 6]> {
    let lengths = [
        size_of::<State>(),
        sizes.rows.checked_mul(size_of::<u64>())?,
        sizes.children.checked_mul(size_of::<u32>())?,
        sizes.trees.checked_mul(size_of::<u16>())?,
        sizes.index.checked_mul(size_of::<u64>())?,
        sizes.locals.checked_mul(size_of::<Local>())?,
    ];
    let mut at = 0_usize;
    let mut ends = [0; 6];
    for (end, length) in ends.iter_mut().zip(lengths) {
        at = at.checked_add(length)?.checked_next_multiple_of(LINE.max(align_of::<Local>()))?;
        *end = at;
    }
    Some(ends)
}

fn sizes(frames: usize, cpus: usize) -> Option<Sizes> {
    const MOST_FRAMES: usize = 1 << 36;
    const MOST_CPUS: usize = 1 << 16;
    let is_right = (1..MOST_FRAMES).contains(&frames) && (1..=MOST_CPUS).contains(&cpus);
    is_right.then(|| Sizes::of::<Standard>(frames, cpus))
}

fn code(error: Error) -> c_int {
    -match error {
        Error::NoMemory => NO_MEMORY,
        Error::Order { .. } => BAD_ORDER,
        Error::OutOfRange { .. } => OUT_OF_RANGE,
        Error::Misaligned { .. } => MISALIGNED,
        Error::NotAllocated { .. } => NOT_ALLOCATED,
        Error::InUse { .. } => IN_USE,
        Error::Offline { .. } => OFFLINE,
        Error::NotOffline { .. } => NOT_OFFLINE,
        Error::Processor { .. } => BAD_CPU,
        Error::Frames { .. } => BAD_SIZE,
        Error::TooSmall { .. } | Error::Unaligned { .. } => BAD_BUFFER,
        _ => BROKEN,
    }
}

fn first(result: Result<usize, Error>) -> c_long {
    result.map_or_else(|error| c_long::from(code(error)), |frame| frame as c_long)
}

fn done(result: Result<(), Error>) -> c_int {
    result.map_or_else(code, |()| 0)
}

#[unsafe(no_mangle)]
pub extern "C" fn craton_frames_size(frames: usize, cpus: usize) -> usize {
    sizes(frames, cpus).and_then(|sizes| offsets(&sizes)).map_or(0, |[.., end]| end)
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_frames_init(
    buffer: *mut u8,
    bytes: usize,
    frames: usize,
    cpus: usize,
    begin: c_int,
    out: *mut *mut State,
) -> c_int {
    let Some(sizes) = sizes(frames, cpus) else { return -BAD_SIZE };
    let Some([rows, children, trees, index, locals, end]) = offsets(&sizes) else { return -BAD_SIZE };
    if out.is_null() || buffer.is_null() || !buffer.addr().is_multiple_of(LINE) || bytes < end {
        return -BAD_BUFFER;
    }
    let init = if begin == 0 { Init::Free } else { Init::Allocated };
    /// # Safety
    /// `len` elements, valid as zeros, are there.
    unsafe fn array<T>(at: *mut u8, len: usize) -> &'static [T] {
        // SAFETY: by the contract.
        unsafe { core::slice::from_raw_parts(at.cast(), len) }
    }
    // SAFETY: the buffer is the state's, long enough, and aligned; zeros are valid atomics.
    unsafe {
        buffer.write_bytes(0, end);
        let metadata = Metadata {
            rows: array(buffer.add(rows), sizes.rows),
            children: array(buffer.add(children), sizes.children),
            trees: array(buffer.add(trees), sizes.trees),
            index: array(buffer.add(index), sizes.index),
            locals: array(buffer.add(locals), sizes.locals),
        };
        let zone = match Zone::new(frames, metadata, init, Config::new(cpus)) {
            Ok(zone) => zone,
            Err(error) => return code(error),
        };
        let state: *mut State = buffer.cast();
        state.write(State { zone });
        out.write(state);
    }
    0
}

/// # Safety
/// `of` is a state of [`craton_frames_init`].
unsafe fn zone<'a>(of: *const State) -> &'a Zone<'static> {
    // SAFETY: by the contract; all changes are atomic.
    unsafe { &(*of).zone }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_frames_get(of: *const State, order: c_uint, kind: c_int, cpu: usize) -> c_long {
    let kind = match kind {
        0 => Kind::Movable,
        2 => Kind::RECLAIMABLE,
        _ => Kind::Unmovable,
    };
    // SAFETY: by the contract.
    first(unsafe { zone(of) }.get(Request { order, kind, processor: cpu }))
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_frames_put(of: *const State, frame: usize, order: c_uint, cpu: usize) -> c_int {
    // SAFETY: by the contract.
    done(unsafe { zone(of) }.put(frame, Request { order, kind: Kind::Movable, processor: cpu }))
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_frames_reserve(of: *const State, frame: usize, frames: usize) -> c_int {
    // SAFETY: by the contract.
    done(unsafe { zone(of) }.reserve(frame, frames))
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_frames_unreserve(of: *const State, frame: usize, frames: usize) -> c_int {
    // SAFETY: by the contract.
    done(unsafe { zone(of) }.unreserve(frame, frames))
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_frames_drain(of: *const State, cpu: usize) -> c_int {
    // SAFETY: by the contract.
    done(unsafe { zone(of) }.drain(cpu))
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_frames_reclaim(of: *const State, near: usize) -> c_long {
    // SAFETY: by the contract.
    first(unsafe { zone(of) }.reclaim(near).ok_or(Error::NoMemory))
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_frames_online(of: *const State, frame: usize) -> c_int {
    // SAFETY: by the contract.
    done(unsafe { zone(of) }.online(frame, 1))
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_frames_may_have(of: *const State, order: c_uint) -> c_int {
    // SAFETY: by the contract.
    c_int::from(unsafe { zone(of) }.may_have(order))
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_frames_stats(of: *const State, out: *mut Stats) {
    // SAFETY: by the contract.
    unsafe {
        let zone = zone(of);
        out.write(Stats {
            frames: zone.frames(),
            free_frames: zone.free_frames(),
            free_huge_frames: zone.free_huge_frames(),
            offline_huge_frames: zone.offline_huge_frames(),
        });
    }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_frames_validate(of: *const State) -> c_int {
    // SAFETY: by the contract.
    if unsafe { zone(of) }.check().is_ok() { 0 } else { -BROKEN }
}

#[unsafe(no_mangle)]
pub extern "C" fn craton_frames_error(result: c_long) -> *const c_char {
    let number = result.checked_neg().and_then(|number| usize::try_from(number).ok()).unwrap_or(0);
    TEXTS.get(number).unwrap_or(&TEXTS[0]).as_ptr()
}
