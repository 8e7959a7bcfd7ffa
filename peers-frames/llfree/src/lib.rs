//! LLFree by its authors (<https://github.com/luhsra/llfree-rs>), behind C functions for
//! papers/src/frames/authors.rs.
//!
//! A panic in their code ends the process by an illegal instruction: nothing may print into a
//! program's output. Any thread may call any function but [`llfree_create`] at any time.
//!
//! **Unsafe.** Trusts the caller's pointers.
#![no_std]

mod memory;

use core::slice::from_raw_parts_mut;
use llfree::{Alloc, Class, Classing, FrameId, HUGE_ORDER, Init, LLFree, MetaData, MetaSize, Request};

/// Of these functions; callers refuse another number.
const ABI: u32 = 1;
const ALIGN: usize = 64;
/// `Classing::simple`: small, huge.
const SIMPLE: u32 = 2;
/// `Classing::movable`: small that stay, small that move, huge.
const MOVABLE: u32 = 3;

#[repr(align(64))]
pub struct Handle {
    llfree: LLFree<'static>,
    /// By whether a block is huge, then by whether it stays.
    class: [[Class; 2]; 2],
}

fn classing(classes: u32, threads: usize) -> Option<(Classing, [[Class; 2]; 2])> {
    // Computed once, so that no request waits for their division.
    match classes {
        SIMPLE => {
            let (classing, of) = Classing::simple(threads);
            Some((classing, [0, HUGE_ORDER].map(|order| [of(order, 0).class; 2])))
        }
        MOVABLE => {
            let (classing, of) = Classing::movable(threads);
            Some((classing, [0, HUGE_ORDER].map(|order| [true, false].map(|movable| of(order, 0, movable).class))))
        }
        _ => None,
    }
}

fn parts(size: &MetaSize) -> [usize; 3] {
    [size.local, size.trees, size.lower].map(|bytes| bytes.next_multiple_of(ALIGN))
}

impl Handle {
    fn request(&self, order: u32, thread: usize, stays: bool) -> Request {
        let order = order as usize;
        let class = self.class[usize::from(order >= HUGE_ORDER)][usize::from(stays)];
        Request::new(order, class, Some(thread))
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn llfree_abi() -> u32 {
    ABI
}

#[unsafe(no_mangle)]
pub extern "C" fn llfree_tree_huge() -> u32 {
    llfree::TREE_HUGE as u32
}

/// 0 for impossible numbers.
#[unsafe(no_mangle)]
pub extern "C" fn llfree_needed(frames: usize, threads: usize, classes: u32) -> usize {
    match classing(classes, threads) {
        Some((classing, _)) if frames > 0 && threads > 0 => {
            size_of::<Handle>() + parts(&LLFree::metadata_size(&classing, frames)).iter().sum::<usize>()
        }
        _ => 0,
    }
}

/// Null if refused.
///
/// # Safety
/// The memory has [`llfree_needed`] zeroed bytes for the same numbers, is aligned to 64 bytes, and
/// used by nothing else.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llfree_create(memory: *mut u8, frames: usize, threads: usize, classes: u32) -> *mut Handle {
    let null = core::ptr::null_mut();
    if memory.is_null() || !(memory as usize).is_multiple_of(ALIGN) || llfree_needed(frames, threads, classes) == 0 {
        return null;
    }
    let Some((classing, class)) = classing(classes, threads) else { return null };
    let size = LLFree::metadata_size(&classing, frames);
    let [local, trees, _] = parts(&size);
    // SAFETY: the handle and three arrays, within `llfree_needed` bytes.
    let meta = unsafe {
        let at = memory.add(size_of::<Handle>());
        MetaData {
            local: from_raw_parts_mut(at, size.local),
            trees: from_raw_parts_mut(at.add(local), size.trees),
            lower: from_raw_parts_mut(at.add(local + trees), size.lower),
        }
    };
    let Ok(llfree) = LLFree::new(frames, Init::FreeAll, &classing, meta) else { return null };
    let handle = memory.cast::<Handle>();
    // SAFETY: aligned, and the memory's first bytes.
    unsafe { handle.write(Handle { llfree, class }) };
    handle
}

/// The first of 2^order frames, or -1; `thread` is below the number of threads.
///
/// # Safety
/// The handle is one of [`llfree_create`], in memory that still exists.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llfree_get(handle: *const Handle, order: u32, thread: usize, stays: bool) -> i64 {
    // SAFETY: the caller's promise.
    let handle = unsafe { &*handle };
    match handle.llfree.get(None, handle.request(order, thread, stays)) {
        Ok((frame, _)) => frame.0 as i64,
        Err(_) => -1,
    }
}

/// Returns 0, or -1 if refused.
///
/// # Safety
/// As for [`llfree_get`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llfree_put(
    handle: *const Handle,
    frame: usize,
    order: u32,
    thread: usize,
    stays: bool,
) -> i32 {
    // SAFETY: the caller's promise.
    let handle = unsafe { &*handle };
    match handle.llfree.put(FrameId(frame), handle.request(order, thread, stays)) {
        Ok(()) => 0,
        Err(_) => -1,
    }
}

/// Unreserves all trees.
///
/// # Safety
/// As for [`llfree_get`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llfree_drain(handle: *const Handle) {
    // SAFETY: the caller's promise.
    unsafe { &*handle }.llfree.drain();
}

/// # Safety
/// As for [`llfree_get`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llfree_free_frames(handle: *const Handle) -> usize {
    // SAFETY: the caller's promise.
    unsafe { &*handle }.llfree.stats().free_frames
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: ends the process, by a signal that shows the place.
    unsafe { core::arch::asm!("ud2", options(noreturn)) }
}
