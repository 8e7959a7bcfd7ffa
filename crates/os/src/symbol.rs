//! Optional symbols: `weak!` is a symbol's address if it was there at link or load time; [`find`]
//! asks the dynamic linker now. So the library needs only the C library, yet serves a C++ runtime.
//!
//! **Unsafe.** Reads the global offset table, and calls `dlsym` if it is there.

use core::ffi::CStr;

/// The address of a symbol that need not exist, or 0.
#[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
#[macro_export]
macro_rules! weak {
    ($name:literal) => {{
        let address: usize;
        // SAFETY: reads only the symbol's table entry, which is 0 when it is undefined.
        unsafe {
            core::arch::asm!(
                concat!(".weak ", $name),
                concat!("mov {a}, qword ptr [rip + ", $name, "@GOTPCREL]"),
                a = out(reg) address,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        address
    }};
}

/// The address of an optional symbol, or 0. Stable Rust lacks weak references: uses `dlsym`.
#[cfg(not(all(target_arch = "x86_64", not(feature = "portable"))))]
#[macro_export]
macro_rules! weak {
    ("dlsym") => {
        $crate::symbol::dlsym_address()
    };
    ($name:literal) => {
        0usize
    };
}

/// Where `dlsym` is.
#[cfg(not(all(target_arch = "x86_64", not(feature = "portable"))))]
#[doc(hidden)]
pub fn dlsym_address() -> usize {
    libc::dlsym as *const () as usize
}

/// The address that the program's own search finds for a name, or 0.
pub fn find(name: &CStr) -> usize {
    let dlsym = weak!("dlsym");
    if dlsym == 0 {
        return 0;
    }
    // SAFETY: the symbol is the C library's `dlsym`, whose type this is.
    unsafe {
        let dlsym: unsafe extern "C" fn(*mut core::ffi::c_void, *const core::ffi::c_char) -> *mut core::ffi::c_void =
            core::mem::transmute(dlsym);
        dlsym(libc::RTLD_DEFAULT, name.as_ptr()) as usize
    }
}
