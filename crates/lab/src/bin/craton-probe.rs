//! `craton-probe`: whose malloc this process has, and whether the whole family is its own.
//!
//! **What.** Uses every function of the malloc family, frees on other threads, and looks up which file each function comes
//! from. With an argument, the path of a library, all of them have to come from there.
//!
//! **Failure.** Exit status 1 and a line on standard error: a function of another file, memory that is not as asked for.
//!
//! **Unsafe.** Calls the C library's allocation functions by their names, as a C program does, and `dladdr`.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::fs;
use std::process::ExitCode;
use std::ptr::{null_mut, write_bytes};

unsafe extern "C" {
    fn valloc(size: usize) -> *mut c_void;
    fn pvalloc(size: usize) -> *mut c_void;
}

/// The functions whose memory may reach `free`, and so have to be of one library.
const FAMILY: [&CStr; 11] = [
    c"malloc",
    c"free",
    c"calloc",
    c"realloc",
    c"reallocarray",
    c"posix_memalign",
    c"aligned_alloc",
    c"memalign",
    c"valloc",
    c"pvalloc",
    c"malloc_usable_size",
];

/// The file that the function of that name comes from in this process.
fn file_of(name: &CStr) -> Option<String> {
    // SAFETY: a C string; zeros are a valid Dl_info, which the call fills in; a name in it is a C string of the dynamic
    // linker's, which stays.
    unsafe {
        let address = libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr());
        let mut info: libc::Dl_info = std::mem::zeroed();
        let found = !address.is_null() && libc::dladdr(address, &mut info) != 0 && !info.dli_fname.is_null();
        found.then(|| CStr::from_ptr(info.dli_fname.cast::<c_char>()).to_string_lossy().into_owned())
    }
}

/// Fails unless `p` is memory of `size` bytes at a multiple of `align`; then frees it.
fn try_and_free(what: &str, p: *mut c_void, size: usize, align: usize) -> Result<(), String> {
    if p.is_null() || !p.addr().is_multiple_of(align) {
        return Err(format!("{what} of {size} bytes gave {p:?}, not a multiple of {align}"));
    }
    // SAFETY: `p` is memory of `size` bytes from the family, freed once.
    unsafe {
        let usable = libc::malloc_usable_size(p);
        write_bytes(p.cast::<u8>(), 0x5a, size);
        libc::free(p);
        if usable < size {
            return Err(format!("{what} of {size} bytes has only {usable} usable ones"));
        }
    }
    Ok(())
}

fn use_family() -> Result<(), String> {
    for size in [1, 16, 100, 1000, 5000, 40_000, 300_000, 3 << 20] {
        // SAFETY: each result is checked and freed by `try_and_free`; the zeros are read within the object.
        unsafe {
            try_and_free("malloc", libc::malloc(size), size, 16.min(size.next_power_of_two()))?;
            let zeroed = libc::calloc(1, size);
            if !zeroed.is_null() && (0..size).any(|i| *zeroed.cast::<u8>().add(i) != 0) {
                return Err(format!("calloc of {size} bytes is not zero"));
            }
            try_and_free("calloc", zeroed, size, 8)?;
            try_and_free("realloc", libc::realloc(libc::malloc(size / 2 + 1), size), size, 8)?;
            try_and_free("memalign", libc::memalign(64, size), size, 64)?;
            try_and_free("aligned_alloc", libc::aligned_alloc(4096, size.next_multiple_of(4096)), size, 4096)?;
            let mut aligned = null_mut();
            let status: c_int = libc::posix_memalign(&mut aligned, 256, size);
            if status != 0 {
                return Err(format!("posix_memalign of {size} bytes failed with {status}"));
            }
            try_and_free("posix_memalign", aligned, size, 256)?;
            try_and_free("valloc", valloc(size), size, 4096)?;
            try_and_free("pvalloc", pvalloc(size), size, 4096)?;
        }
    }
    Ok(())
}

/// Objects of one thread are freed by others; their contents tell whether two ever were the same memory.
fn use_threads() -> Result<(), String> {
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..8).map(|_| std::sync::mpsc::channel::<Vec<u64>>()).unzip();
    std::thread::scope(|scope| {
        let threads: Vec<_> = receivers
            .into_iter()
            .enumerate()
            .map(|(me, receiver)| {
                let next = senders[(me + 1) % senders.len()].clone();
                scope.spawn(move || {
                    (0..2000).for_each(|i| {
                        let _ = next.send(vec![i * 8 + me as u64; 1 + (i as usize * 7) % 200]);
                    });
                    drop(next);
                    receiver.iter().take(2000).all(|v| v.iter().all(|x| *x == v[0]))
                })
            })
            .collect();
        let right = threads.into_iter().all(|thread| thread.join().unwrap_or(false));
        right.then_some(()).ok_or_else(|| "an object of one thread was changed by another".to_owned())
    })
}

fn probe(expected: Option<&str>) -> Result<String, String> {
    let server = file_of(FAMILY[0]).ok_or("malloc is of no file")?;
    let same = |a: &str, b: &str| {
        a == b || fs::canonicalize(a).ok().is_some_and(|a| fs::canonicalize(b).is_ok_and(|b| a == b))
    };
    if let Some(library) = expected.filter(|library| !same(library, &server)) {
        return Err(format!("malloc is that of {server}, not of {library}"));
    }
    // glibc's own reallocarray calls realloc by its name, so that it does no harm.
    for name in FAMILY.iter().filter(|name| **name != c"reallocarray") {
        let file = file_of(name).unwrap_or_default();
        if file != server {
            return Err(format!("{} is that of {file}, while malloc is that of {server}", name.to_string_lossy()));
        }
    }
    use_family()?;
    use_threads()?;
    Ok(server)
}

fn main() -> ExitCode {
    let expected = std::env::args().nth(1);
    match probe(expected.as_deref()) {
        Ok(server) => {
            println!("{server}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("craton-probe: {why}");
            ExitCode::FAILURE
        }
    }
}
