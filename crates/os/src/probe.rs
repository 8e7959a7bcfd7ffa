//! Static probes (USDT) for bpftrace, perf, SystemTap and gdb.
//!
//! **What.** Where a probe stands, the code has a `nop`. A note in the section `.note.stapsdt` has
//! its address, the names, and the registers of the arguments. A tool puts a breakpoint over the
//! `nop` while it traces; the process does not notice, as there are no semaphores. docs/probes.md
//! lists the probes.
//!
//! **From.** The notes of SystemTap's `sys/sdt.h`, version 3:
//! ```text
//! | 4: length of the name | 4: of the rest | 4: type 3 | "stapsdt\0" |
//! | 8: address of the nop | 8: of `.stapsdt.base` | 8: of the semaphore, 0 | provider \0 name \0 arguments \0 |
//! ```
//! A tool compares the second address with that of the section `.stapsdt.base`, should a later
//! program have moved the file's addresses.
//!
//! **Units.** Bytes, nanoseconds; all arguments are unsigned words.
//!
//! **Cost.** A `nop`, and the arguments in registers. Slow paths only.
//!
//! **Unsafe.** Assembles a `nop`.

/// The section that notes name.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[doc(hidden)]
#[used]
#[unsafe(link_section = ".stapsdt.base")]
pub static BASE: u8 = 0;

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! probe {
    ($name:ident $first:ident $($next:ident)*) => {
        // SAFETY: a nop; the rest lies in a section that no process maps.
        unsafe {
            core::arch::asm!(
                "990: nop",
                ".pushsection .note.stapsdt,\"?\",\"note\"",
                ".balign 4",
                ".4byte 992f-991f, 994f-993f, 3",
                "991: .asciz \"stapsdt\"",
                "992: .balign 4",
                "993: .8byte 990b",
                ".8byte {base}",
                ".8byte 0",
                ".asciz \"craton\"",
                concat!(".asciz \"", stringify!($name), "\""),
                concat!(".asciz \"8@{", stringify!($first), "}", $(" 8@{", stringify!($next), "}",)* "\""),
                "994: .balign 4",
                ".popsection",
                $first = in(reg) $first,
                $($next = in(reg) $next,)*
                base = sym BASE,
                options(nomem, nostack, preserves_flags),
                #[cfg(target_arch = "x86_64")]
                options(att_syntax),
            );
        }
    };
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
macro_rules! probe {
    ($name:ident $($argument:ident)+) => {
        _ = ($($argument,)+)
    };
}

macro_rules! probes {
    ($($(#[$doc:meta])* $name:ident($($argument:ident),+);)+) => {
        $(
            $(#[$doc])*
            #[inline(always)]
            pub fn $name($($argument: usize),+) {
                probe!($name $($argument)+);
            }
        )+
    };
}

probes! {
    /// An object became a sample of the heap profile, which stands for `bytes`.
    sample_alloc(object, size, bytes);
    /// A sample was freed; its life lasted `lived_ns`.
    sample_free(object, size, bytes, lived_ns);
    /// The page heap allocated a span.
    span_alloc(address, bytes);
    /// The page heap got a span back.
    span_free(address, bytes);
    /// The system mapped memory, or opened more of the heap's region.
    system_map(address, bytes);
    /// The system unmapped memory.
    system_unmap(address, bytes);
    /// Free memory went back to the system; its addresses stay.
    release(address, bytes);
    /// `used` bytes passed the soft limit.
    soft_limit(limit, used);
    /// The hard limit refused a request of `bytes`.
    hard_limit(limit, bytes);
}
