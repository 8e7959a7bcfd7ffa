//! Checks each call of the malloc family.
//!
//! **Unsafe.** Calls C's allocator, and touches objects within their requested size.

use crate::family::Family;
use std::ffi::c_void;
use std::sync::mpsc;

const SIZES: [usize; 16] =
    [0, 1, 7, 8, 16, 17, 100, 1024, 1025, 4096, 8192, 32 << 10, 65_537, 256 << 10, 1 << 20, 3 << 20];
const PAGE_BYTES: usize = 4096;
/// Every peer grants it: rpmalloc refuses 64 KiB, TCMalloc aborts at 4 MiB.
const MOST_ALIGN_BYTES: usize = 32 << 10;
const THREADS: usize = 8;
const OBJECTS_PER_THREAD: usize = 2000;

pub fn all(family: &Family) -> Result<(), String> {
    sizes(family)?;
    zeroes(family)?;
    contents_survive_realloc(family)?;
    alignments(family)?;
    pages(family)?;
    frees_across_threads(family)
}

fn natural_align(size: usize) -> usize {
    if size < 16 { 8 } else { 16 }
}

fn fill(family: &Family, call: &str, object: *mut c_void, align: usize, size: usize, mark: u8) -> Result<(), String> {
    if object.is_null() {
        return Err(format!("{call} gave null"));
    }
    if !object.addr().is_multiple_of(align) {
        return Err(format!("{call} gave {object:p}, which is not a multiple of {align}"));
    }
    // SAFETY: a live object of the family.
    let usable = unsafe { (family.usable_size)(object) };
    if usable < size {
        return Err(format!("{call} gave an object whose malloc_usable_size is {usable}"));
    }
    // SAFETY: it has `size` bytes.
    unsafe { object.cast::<u8>().write_bytes(mark, size) };
    holds(call, object, size, mark)
}

fn holds(call: &str, object: *mut c_void, size: usize, mark: u8) -> Result<(), String> {
    // SAFETY: it has `size` bytes, written or zeroed.
    let bytes = unsafe { std::slice::from_raw_parts(object.cast::<u8>(), size) };
    match bytes.iter().position(|byte| *byte != mark) {
        Some(at) => Err(format!("{call}: byte {at} is {}, not {mark}", bytes[at])),
        None => Ok(()),
    }
}

fn sizes(family: &Family) -> Result<(), String> {
    let mut objects = Vec::new();
    for (size, mark) in SIZES.into_iter().zip(1..) {
        // SAFETY: malloc takes any size.
        let object = unsafe { (family.malloc)(size) };
        fill(family, &format!("malloc({size})"), object, natural_align(size), size, mark)?;
        objects.push((object, size, mark));
    }
    for (object, size, mark) in objects {
        // No two objects overlap.
        holds(&format!("malloc({size}), later"), object, size, mark)?;
        // SAFETY: live, and not used after.
        unsafe { (family.free)(object) };
    }
    // SAFETY: null is allowed.
    unsafe { (family.free)(std::ptr::null_mut()) };
    Ok(())
}

fn zeroes(family: &Family) -> Result<(), String> {
    for size in SIZES {
        for count in [1, 3] {
            let call = format!("calloc({count}, {size})");
            // Dirty memory, which calloc is likely to reuse. SAFETY: filled within its size, then
            // freed.
            unsafe {
                let dirty = (family.malloc)(count * size);
                fill(family, &format!("malloc({count} * {size})"), dirty, 1, count * size, 0xA5)?;
                (family.free)(dirty);
            }
            // SAFETY: calloc takes any two sizes.
            let object = unsafe { (family.calloc)(count, size) };
            if object.is_null() {
                return Err(format!("{call} gave null"));
            }
            holds(&call, object, count * size, 0)?;
            fill(family, &call, object, natural_align(size), count * size, 0x5A)?;
            // SAFETY: live, and not used after.
            unsafe { (family.free)(object) };
        }
    }
    Ok(())
}

fn contents_survive_realloc(family: &Family) -> Result<(), String> {
    for from in SIZES {
        for to in SIZES.into_iter().filter(|to| *to != 0) {
            let call = format!("realloc(malloc({from}), {to})");
            // SAFETY: realloc takes null, then a live object.
            let object = unsafe {
                let object = (family.realloc)(std::ptr::null_mut(), from);
                fill(family, &format!("realloc(null, {from})"), object, natural_align(from), from, 0x3C)?;
                (family.realloc)(object, to)
            };
            if object.is_null() {
                return Err(format!("{call} gave null"));
            }
            holds(&call, object, from.min(to), 0x3C)?;
            fill(family, &call, object, natural_align(to), to, 0xC3)?;
            // SAFETY: the one left of the two.
            unsafe { (family.free)(object) };
        }
    }
    Ok(())
}

fn alignments(family: &Family) -> Result<(), String> {
    let mut align = size_of::<usize>();
    while align <= MOST_ALIGN_BYTES {
        for size in [1, align, 3 * align, 100_000] {
            let mut by_pointer = std::ptr::null_mut();
            // SAFETY: a power of two from a pointer's size; a place for the pointer.
            let status = unsafe { (family.posix_memalign)(&mut by_pointer, align, size) };
            if status != 0 {
                return Err(format!("posix_memalign({align}, {size}) gave {status}"));
            }
            // C11's aligned_alloc wants a multiple.
            let whole = size.next_multiple_of(align);
            // SAFETY: a power of two, and a multiple of it.
            let (by_align, by_c11) = unsafe { ((family.memalign)(align, size), (family.aligned_alloc)(align, whole)) };
            fill(family, &format!("posix_memalign({align}, {size})"), by_pointer, align, size, 1)?;
            fill(family, &format!("memalign({align}, {size})"), by_align, align, size, 2)?;
            fill(family, &format!("aligned_alloc({align}, {whole})"), by_c11, align, whole, 3)?;
            for object in [by_pointer, by_align, by_c11] {
                // SAFETY: live, and not used after.
                unsafe { (family.free)(object) };
            }
        }
        align *= 2;
    }
    Ok(())
}

fn pages(family: &Family) -> Result<(), String> {
    for size in [1, PAGE_BYTES, PAGE_BYTES + 1, 300_000] {
        let whole = size.next_multiple_of(PAGE_BYTES);
        // SAFETY: both take any size.
        let (object, pages) = unsafe { ((family.valloc)(size), (family.pvalloc)(size)) };
        fill(family, &format!("valloc({size})"), object, PAGE_BYTES, size, 4)?;
        fill(family, &format!("pvalloc({size})"), pages, PAGE_BYTES, whole, 5)?;
        // SAFETY: live, and not used after.
        unsafe {
            (family.free)(object);
            (family.free)(pages);
        }
    }
    Ok(())
}

struct Sent {
    object: *mut c_void,
    size: usize,
    mark: u8,
}

// SAFETY: only its owner touches the object.
unsafe impl Send for Sent {}

/// A ring: each thread allocates for the next.
fn frees_across_threads(family: &Family) -> Result<(), String> {
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| mpsc::channel::<Sent>()).unzip();
    std::thread::scope(|scope| {
        let threads: Vec<_> = receivers
            .into_iter()
            .enumerate()
            .map(|(i, receiver)| {
                let next = senders[(i + 1) % THREADS].clone();
                scope.spawn(move || {
                    for n in 0..OBJECTS_PER_THREAD {
                        let (size, mark) = (1 + (n * 37 + i * 11) % 3000, (n % 251) as u8);
                        // SAFETY: malloc takes any size.
                        let object = unsafe { (family.malloc)(size) };
                        fill(family, &format!("malloc({size}) in a thread"), object, natural_align(size), size, mark)?;
                        // Fails once the receiver has ended, by an error.
                        let _ = next.send(Sent { object, size, mark });
                    }
                    drop(next);
                    for Sent { object, size, mark } in receiver {
                        holds(&format!("malloc({size}) of another thread"), object, size, mark)?;
                        // SAFETY: sent and freed once.
                        unsafe { (family.free)(object) };
                    }
                    Ok(())
                })
            })
            .collect();
        // While a sender exists, no receiver sees the end.
        drop(senders);
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| Err("a thread panicked".to_owned())))
    })
}
