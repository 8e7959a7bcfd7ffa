//! Objects that the dynamic linker has loaded, and their symbols.
//!
//! **What.** Reads `DT_GNU_HASH` tables under the dynamic linker's lock. Before glibc 2.35 no other
//! namespace (dlmopen(3)) is seen. Some 50 ns for each object and name.
//! **Unsafe.** Reads loaded objects' tables; [`redirect`] writes to one.

use crate::{process, symbol};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::{self, null};
use core::slice;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// `Elf64_Dyn`.
#[repr(C)]
struct Entry {
    tag: usize,
    value: usize,
}

const DT_STRTAB: usize = 5;
const DT_SYMTAB: usize = 6;
const DT_SONAME: usize = 14;
const DT_GNU_HASH: usize = 0x6fff_fef5;
const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const STT_FUNC: u8 = 2;

/// `Elf64_Sym`.
#[repr(C)]
struct Symbol {
    name: u32,
    info: u8,
    _visibility: u8,
    section: u16,
    value: AtomicUsize,
    _size: usize,
}

/// Filter words, buckets, hashes follow; a bucket's last has bit 0.
#[repr(C)]
struct Head {
    buckets: u32,
    first: u32,
    filter: u32,
    _shift: u32,
}

#[derive(Clone, Copy)]
pub struct Object {
    base: usize,
    symbols: *const Symbol,
    strings: *const c_char,
    hash: *const Head,
    name: Option<usize>,
}

impl Object {
    /// # Safety
    /// `dynamic`: of an object that stays loaded, or null.
    unsafe fn new(base: usize, mut dynamic: *const Entry) -> Option<Self> {
        let (mut symbols, mut strings, mut hash, mut name) = (0, 0, 0, None);
        if dynamic.is_null() {
            return None;
        }
        // SAFETY: tag 0 ends the section.
        while let Entry { tag: tag @ 1.., value } = *unsafe { &*dynamic } {
            // The dynamic linker adds the base, where it can write.
            let address = if value < base { base + value } else { value };
            match tag {
                DT_SYMTAB => symbols = address,
                DT_STRTAB => strings = address,
                DT_GNU_HASH => hash = address,
                DT_SONAME => name = Some(value),
                _ => {}
            }
            dynamic = dynamic.wrapping_add(1);
        }
        let all = symbols != 0 && strings != 0 && hash != 0;
        let (symbols, strings) = (ptr::with_exposed_provenance(symbols), ptr::with_exposed_provenance(strings));
        all.then_some(Self { base, symbols, strings, hash: ptr::with_exposed_provenance(hash), name })
    }

    fn text(&self, at: usize) -> &CStr {
        // SAFETY: the object's tables name this terminated string.
        unsafe { CStr::from_ptr(self.strings.add(at)) }
    }

    /// Whether other objects need this one by that name.
    pub fn has_name(&self, name: &CStr) -> bool {
        self.name.is_some_and(|at| self.text(at) == name)
    }

    /// One for each version.
    fn each_function<'a>(&'a self, name: &CStr, mut visit: impl FnMut(&'a Symbol)) {
        let hash = name.to_bytes().iter().fold(5381u32, |h, b| h.wrapping_mul(33).wrapping_add((*b).into()));
        // SAFETY: the dynamic section names a table of this form.
        unsafe {
            let head = &*self.hash;
            let buckets = self.hash.add(1).cast::<u64>().add(head.filter as usize).cast::<u32>();
            if head.buckets == 0 {
                return;
            }
            let hashes = buckets.add(head.buckets as usize);
            let mut i = *buckets.add((hash % head.buckets) as usize);
            while i >= head.first {
                let its = *hashes.add((i - head.first) as usize);
                let symbol = &*self.symbols.add(i as usize);
                let fits = its | 1 == hash | 1 && symbol.section != 0 && symbol.info & 15 == STT_FUNC;
                if fits && self.text(symbol.name as usize) == name {
                    visit(symbol);
                }
                if its & 1 != 0 {
                    return;
                }
                i += 1;
            }
        }
    }

    pub fn function(&self, name: &CStr) -> usize {
        let mut found = 0;
        self.each_function(name, |symbol| found = self.base.wrapping_add(symbol.value.load(Relaxed)));
        found
    }
}

fn each(mut visit: impl FnMut(Option<Object>, usize, &[libc::Elf64_Phdr]) -> bool) {
    type Visit<'a> = &'a mut dyn FnMut(Option<Object>, usize, &[libc::Elf64_Phdr]) -> bool;
    /// # Safety
    /// Arguments: the C library's record of an object, and a [`Visit`].
    unsafe extern "C" fn visit_object(info: *mut libc::dl_phdr_info, _: usize, visit: *mut c_void) -> c_int {
        // SAFETY: by the contract.
        let (info, visit) = unsafe { (&*info, &mut *visit.cast::<Visit<'_>>()) };
        // SAFETY: there are that many headers.
        let headers = unsafe { slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
        let base = info.dlpi_addr as usize;
        let dynamic = headers.iter().find(|header| header.p_type == PT_DYNAMIC);
        let dynamic =
            dynamic.map_or(null(), |header| ptr::with_exposed_provenance(base.wrapping_add(header.p_vaddr as usize)));
        // SAFETY: by the header; the object stays loaded during the call.
        let object = unsafe { Object::new(base, dynamic) };
        c_int::from(visit(object, base, headers))
    }
    let mut visit: Visit<'_> = &mut visit;
    // SAFETY: the callback has its type and its argument.
    unsafe { libc::dl_iterate_phdr(Some(visit_object), (&raw mut visit).cast()) };
}

/// Of the first object behind the one that has it at `ours`, else of the first; or 0.
pub fn function(name: &CStr, ours: usize) -> usize {
    let (mut first, mut next, mut is_behind) = (0, 0, false);
    each(|object, _, _| {
        let found = object.map_or(0, |object| object.function(name));
        if found == ours {
            is_behind |= ours != 0;
        } else if is_behind {
            next = found;
        } else if first == 0 {
            first = found;
        }
        next != 0
    });
    if next != 0 { next } else { first }
}

/// Leads later links to these functions elsewhere; returns whether that worked.
pub fn redirect(object: &CStr, functions: &[(&CStr, usize)]) -> bool {
    let mut done = false;
    each(|found, base, headers| {
        let Some(found) = found.filter(|found| found.has_name(object)) else { return false };
        done = redirect_in(&found, base, headers, functions);
        true
    });
    done
}

fn redirect_in(object: &Object, base: usize, headers: &[libc::Elf64_Phdr], functions: &[(&CStr, usize)]) -> bool {
    let value = |to: usize| to.wrapping_sub(base);
    let (mut start, mut end) = (usize::MAX, 0);
    for (name, to) in functions {
        object.each_function(name, |symbol| {
            if symbol.value.load(Relaxed) != value(*to) {
                let at = ptr::from_ref(symbol).addr();
                (start, end) = (start.min(at), end.max(at + size_of::<Symbol>()));
            }
        });
    }
    if start > end {
        return true;
    }
    let holds = |header: &&libc::Elf64_Phdr| {
        let from = base.wrapping_add(header.p_vaddr as usize);
        header.p_type == PT_LOAD && (from..from + header.p_memsz as usize).contains(&start)
    };
    let Some(segment) = headers.iter().find(holds) else { return false };
    let page = process::page_size();
    let start = start & !(page - 1);
    let bytes = end.next_multiple_of(page) - start;
    // A header's bits: execute, write, read.
    let rights = [(4, libc::PROT_READ), (2, libc::PROT_WRITE), (1, libc::PROT_EXEC)];
    let rights = rights.iter().fold(0, |all, (bit, right)| if segment.p_flags & bit != 0 { all | right } else { all });
    // SAFETY: the object's pages; only rights change, and none goes meanwhile.
    let allow = |rights| unsafe { libc::mprotect(ptr::with_exposed_provenance_mut(start), bytes, rights) == 0 };
    if !allow(rights | libc::PROT_WRITE) {
        return false;
    }
    for (name, to) in functions {
        object.each_function(name, |symbol| symbol.value.store(value(*to), Relaxed));
    }
    allow(rights)
}

/// `struct r_debug_extended`.
#[repr(C)]
struct Namespace {
    version: c_int,
    first: *const Link,
    _others: [usize; 3],
    /// From version 2 on.
    next: *const Namespace,
}

/// `struct link_map`.
#[repr(C)]
struct Link {
    base: usize,
    _name: *const c_char,
    dynamic: *const Entry,
    next: *const Link,
}

/// Visits every namespace's objects until `true`. Call nothing that takes the dynamic linker's
/// locks.
pub fn in_namespaces(mut visit: impl FnMut(usize, Object) -> bool) {
    // It takes a lock that comes before `each`'s.
    let first = symbol::find(c"_r_debug");
    each(|_, _, _| {
        let mut namespace = ptr::with_exposed_provenance::<Namespace>(first);
        let mut number = 0;
        // SAFETY: null ends the lists, which stand still under `each`'s lock.
        while let Some(list) = unsafe { namespace.as_ref() } {
            let mut link = list.first;
            // SAFETY: likewise.
            while let Some(object) = unsafe { link.as_ref() } {
                // SAFETY: likewise; the object stays loaded during the call.
                if unsafe { Object::new(object.base, object.dynamic) }.is_some_and(|object| visit(number, object)) {
                    return true;
                }
                link = object.next;
            }
            namespace = if list.version >= 2 { list.next } else { null() };
            number += 1;
        }
        true
    });
}

#[cfg(test)]
mod tests;
