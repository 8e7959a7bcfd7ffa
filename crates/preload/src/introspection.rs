//! glibc's functions that inspect or tune malloc.
//!
//! **Unsafe.** Writes to the program's C stream.

use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering::Relaxed;
use craton_malloc::SEGMENT;
use craton_malloc::front;
use craton_malloc::{size_class, stats};
use craton_os::{Line, process};

#[repr(C)]
#[derive(Default)]
pub struct Mallinfo2 {
    arena: usize,
    ordblks: usize,
    smblks: usize,
    hblks: usize,
    hblkhd: usize,
    usmblks: usize,
    fsmblks: usize,
    uordblks: usize,
    fordblks: usize,
    keepcost: usize,
}

#[repr(C)]
#[derive(Default)]
pub struct Mallinfo {
    fields: [c_int; 10],
}

/// `arena`, `hblkhd`: the heap, huge objects; `uordblks`: live, or in other threads' caches.
#[unsafe(no_mangle)]
pub extern "C" fn mallinfo2() -> Mallinfo2 {
    let arena = SEGMENT.heap_backed_bytes.load(Relaxed) as usize;
    let hblkhd = SEGMENT.huge_bytes.load(Relaxed) as usize;
    let uordblks = front::bytes_in_use() as usize;
    let fordblks = (arena + hblkhd).saturating_sub(uordblks);
    Mallinfo2 { arena, hblkhd, uordblks, fordblks, keepcost: fordblks, ..Mallinfo2::default() }
}

/// Clamps, where glibc wraps.
#[unsafe(no_mangle)]
pub extern "C" fn mallinfo() -> Mallinfo {
    let m = mallinfo2();
    let int = |n: usize| c_int::try_from(n).unwrap_or(c_int::MAX);
    let (arena, hblkhd, used, free) = (int(m.arena), int(m.hblkhd), int(m.uordblks), int(m.fordblks));
    Mallinfo { fields: [arena, 0, 0, 0, hblkhd, 0, 0, used, free, free] }
}

#[unsafe(no_mangle)]
pub extern "C" fn malloc_trim(_keep: usize) -> c_int {
    c_int::from(front::release() > 0)
}

/// So that programs go on.
#[unsafe(no_mangle)]
pub extern "C" fn mallopt(parameter: c_int, _value: c_int) -> c_int {
    c_int::from(parameter == 1 || (-8..=-1).contains(&parameter))
}

#[unsafe(no_mangle)]
pub extern "C" fn malloc_stats() {
    stats::print(2);
}

/// # Safety
/// `stream` is an open `FILE *`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_info(options: c_int, stream: *mut c_void) -> c_int {
    if options != 0 {
        return process::EINVAL;
    }
    let write = |line: Line| {
        // SAFETY: by the contract; the C library locks it.
        unsafe { craton_os::write_to_stream(stream, line) };
    };
    write(Line::new().text("<malloc version=\"craton-1\">"));
    for (name, value) in stats::counted_with_page_tables().numbers() {
        write(Line::new().text("<total type=\"").text(name).text("\" value=\"").number(value).text("\"/>"));
    }
    for class in 1..=size_class::CLASSES {
        let (size, s) = (size_class::size_of_class(class) as u64, front::class_stats(class));
        if s.refills > 0 {
            let line = Line::new().text("<class size=\"").number(size).text("\" slabs=\"").number(s.slabs.into());
            write(line.text("\" objects=\"").number(s.objects_out).text("\"/>"));
        }
    }
    write(Line::new().text("</malloc>"));
    0
}
