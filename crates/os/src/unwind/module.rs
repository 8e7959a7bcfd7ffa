//! Finds an address's module and its unwinding tables.
//!
//! `_dl_find_object` (glibc 2.35) is lock-free; `dl_iterate_phdr` may wait.
//! **Unsafe.** Calls both; reads program headers.

use crate::weak;
use core::ffi::{c_int, c_void};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Module {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) frames: usize,
    /// Changes when the module is loaded anew.
    pub(super) record: usize,
}

/// glibc's `struct dl_find_object` on x86-64.
#[repr(C)]
struct Found {
    flags: u64,
    start: usize,
    end: usize,
    link_map: usize,
    frames: usize,
    reserved: [u64; 7],
}

pub(super) fn find(address: usize) -> Option<Module> {
    match weak!("_dl_find_object") {
        0 => find_by_list(address),
        function => find_by_object(function, address),
    }
}

fn find_by_object(function: usize, address: usize) -> Option<Module> {
    let mut found = Found { flags: 0, start: 0, end: 0, link_map: 0, frames: 0, reserved: [0; 7] };
    // SAFETY: glibc's function has this type, fills the record, and accepts any address.
    let missing = unsafe {
        let function: unsafe extern "C" fn(usize, *mut Found) -> c_int = core::mem::transmute(function);
        function(address, &mut found)
    };
    let Found { start, end, frames, link_map: record, .. } = found;
    (missing == 0 && frames != 0).then_some(Module { start, end, frames, record })
}

struct Search {
    address: usize,
    found: Option<Module>,
}

pub(super) fn find_by_list(address: usize) -> Option<Module> {
    /// # Safety
    /// The C library passes its record, and the search.
    unsafe extern "C" fn visit_object(info: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
        // SAFETY: by the contract.
        let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
        let base = info.dlpi_addr as usize;
        let (mut start, mut end, mut frames, mut inside) = (usize::MAX, 0, 0, false);
        for i in 0..usize::from(info.dlpi_phnum) {
            // SAFETY: there are that many headers.
            let header = unsafe { &*info.dlpi_phdr.add(i) };
            let from = base.wrapping_add(header.p_vaddr as usize);
            let to = from.wrapping_add(header.p_memsz as usize);
            match header.p_type {
                libc::PT_LOAD => {
                    (start, end) = (start.min(from), end.max(to));
                    inside |= (from..to).contains(&search.address);
                }
                libc::PT_GNU_EH_FRAME => frames = from,
                _ => {}
            }
        }
        if inside && frames != 0 {
            search.found = Some(Module { start, end, frames, record: 0 });
        }
        c_int::from(inside)
    }
    let mut search = Search { address, found: None };
    // SAFETY: the callback has its type and its argument.
    unsafe { libc::dl_iterate_phdr(Some(visit_object), (&raw mut search).cast()) };
    search.found
}
