//! Optional symbols: the library serves a C++ runtime without needing it.
//!
//! **Unsafe.** Reads the global offset table; calls `dlsym`.

use core::ffi::CStr;

/// At link or load time; 0: none.
#[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
#[macro_export]
macro_rules! weak {
    ($name:literal) => {{
        let address: usize;
        // SAFETY: reads the symbol's table entry, 0 when undefined.
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

/// Stable Rust lacks weak references.
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

#[cfg(not(all(target_arch = "x86_64", not(feature = "portable"))))]
#[doc(hidden)]
pub fn dlsym_address() -> usize {
    libc::dlsym as *const () as usize
}

/// By the program's search; 0: none.
pub fn find(name: &CStr) -> usize {
    let dlsym = weak!("dlsym");
    if dlsym == 0 {
        return 0;
    }
    // SAFETY: the C library's `dlsym` has this type.
    unsafe {
        let dlsym: unsafe extern "C" fn(*mut core::ffi::c_void, *const core::ffi::c_char) -> *mut core::ffi::c_void =
            core::mem::transmute(dlsym);
        dlsym(libc::RTLD_DEFAULT, name.as_ptr()) as usize
    }
}
