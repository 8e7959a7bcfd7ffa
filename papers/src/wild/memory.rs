//! Raw objects, and samples of memory without allocating, so that an idle program stays idle.
//!
//! **Unsafe.** Calls `malloc`, `free`, and the operators by their addresses.

use std::alloc::{Layout, handle_alloc_error};
use std::fs::File;
use std::io::Read;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

pub const PAGE: usize = 4096;

type New = unsafe extern "C" fn(usize) -> *mut libc::c_void;
type SizedDelete = unsafe extern "C" fn(*mut libc::c_void, usize);

/// `operator new(size_t)`, `operator delete(void*, size_t)`.
static OPERATORS: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// A preloaded library's, else libstdc++'s. Error: no libstdc++.
pub fn find_operators() -> Result<(), String> {
    // SAFETY: initializers as in any C++ program.
    unsafe { libc::dlopen(c"libstdc++.so.6".as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
    for (slot, name) in OPERATORS.iter().zip([c"_Znwm", c"_ZdlPvm"]) {
        // SAFETY: a C string.
        let at = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        if at.is_null() {
            return Err(format!("there is no {}; install libstdc++6", name.to_string_lossy()));
        }
        slot.store(at as usize, Relaxed);
    }
    Ok(())
}

/// `CXX`: by the operators, after [`find_operators`].
pub struct Object<const CXX: bool = false> {
    at: NonNull<u8>,
    bytes: usize,
}

// SAFETY: an object owns its memory.
unsafe impl<const CXX: bool> Send for Object<CXX> {}

impl<const CXX: bool> Object<CXX> {
    /// At least 1, not written.
    #[inline]
    pub fn new(bytes: usize) -> Self {
        let at = if CXX {
            let new = OPERATORS[0].load(Relaxed);
            assert!(new != 0, "the operators are looked up first");
            // SAFETY: the operator, which takes a size.
            unsafe { std::mem::transmute::<usize, New>(new)(bytes) }
        } else {
            // SAFETY: takes a size.
            unsafe { libc::malloc(bytes) }
        };
        Self::of(at, bytes)
    }

    fn of(at: *mut libc::c_void, bytes: usize) -> Self {
        let layout = Layout::from_size_align(bytes, 1).expect("smaller than half of the address space");
        Self { at: NonNull::new(at.cast()).unwrap_or_else(|| handle_alloc_error(layout)), bytes }
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    #[inline]
    pub fn write(&self, step: usize) {
        for at in (0..self.bytes).step_by(step) {
            // SAFETY: within the object; volatile, so that the compiler keeps it.
            unsafe { self.at.add(at).write_volatile(at as u8 | 1) };
        }
    }
}

impl Object {
    pub fn zeroed(bytes: usize) -> Self {
        // SAFETY: takes two sizes.
        Self::of(unsafe { libc::calloc(1, bytes) }, bytes)
    }

    pub fn filled(bytes: usize) -> Self {
        let object = Self::new(bytes);
        // SAFETY: all of the object.
        unsafe { object.at.write_bytes(1, bytes) };
        std::hint::black_box(object)
    }

    /// Writes a byte on each page.
    pub fn written(bytes: usize) -> Self {
        let object = Self::new(bytes);
        object.write(PAGE);
        object
    }
}

impl<const CXX: bool> Drop for Object<CXX> {
    #[inline]
    fn drop(&mut self) {
        let at = self.at.as_ptr().cast();
        if CXX {
            let delete = OPERATORS[1].load(Relaxed);
            // SAFETY: delete gets new's pointer and size, once.
            unsafe { std::mem::transmute::<usize, SizedDelete>(delete)(at, self.bytes) };
        } else {
            // SAFETY: of malloc or calloc, freed once.
            unsafe { libc::free(at) };
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    pub at_s: f64,
    pub rss_bytes: u64,
    pub huge_bytes: u64,
}

pub struct Meter {
    start: Instant,
    pub samples: Vec<Sample>,
}

const MOST: usize = 1000;

impl Meter {
    pub fn start() -> Self {
        Self { start: Instant::now(), samples: Vec::with_capacity(MOST) }
    }

    pub fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    pub fn sample(&mut self) -> Sample {
        let [rss_bytes, huge_bytes] = fields("/proc/self/smaps_rollup", ["Rss:", "AnonHugePages:"]);
        let sample = Sample { at_s: self.seconds(), rss_bytes, huge_bytes };
        if self.samples.len() == MOST {
            self.samples.pop();
        }
        self.samples.push(sample);
        sample
    }
}

pub fn peak_bytes() -> u64 {
    fields("/proc/self/status", ["VmHWM:"])[0]
}

/// Of lines `KEY N kB`, in bytes.
fn fields<const N: usize>(path: &str, keys: [&str; N]) -> [u64; N] {
    let mut buffer = [0; PAGE];
    let length = File::open(path).and_then(|mut file| file.read(&mut buffer)).unwrap_or(0);
    let text = std::str::from_utf8(&buffer[..length]).unwrap_or("");
    let value =
        |key: &str| text.lines().find_map(|line| line.strip_prefix(key))?.trim().split(' ').next()?.parse().ok();
    keys.map(|key| value(key).map_or(0, |kib: u64| kib << 10))
}

#[cfg(test)]
mod tests;
