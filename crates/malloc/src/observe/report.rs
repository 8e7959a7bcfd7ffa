//! Reports of bad pointers and of damaged thread caches. The file of `debug_file` gets them with a
//! stack.

use crate::statics::{KIT, OBJECT_CACHES};
use crate::thread::nested;
use craton_heap::Misuse;
use craton_heap::size_class;
use craton_objects::caches::name_of;
use craton_os::{Line, loaded, maps};

pub type Call = &'static str;

/// The kind of a report about a free list.
const DAMAGE: &str = "damage";

#[cold]
fn end(kind: &'static str, line: Line) -> ! {
    line.abort_after(|line| nested::within(|| KIT.record(kind, line)))
}

/// The list leads to something else, or an object without its mark.
#[cold]
pub(crate) fn not_free(class: usize, at: *mut u8) -> ! {
    let line = Line::new().text("craton: the list of free objects of ");
    let line = line.number(size_class::size_of_class(class) as u64).text(" bytes leads to ").address(at as usize);
    end(DAMAGE, line.text(", which is no intact one; ").text(CAUSES))
}

/// Two owners of an object cannot be undone.
#[cold]
pub(crate) fn given_twice(class: usize, objects: u32) -> ! {
    end(DAMAGE, about_list(class, objects).text(" given out twice; ").text(CAUSES))
}

/// Objects changed while free.
#[cold]
pub(crate) fn lost(class: usize, objects: u32) -> ! {
    end(DAMAGE, about_list(class, objects).text(" lost; ").text(CAUSES))
}

fn with_name(line: Line, cache: u16) -> Line {
    line.text("\"").text(name_of(&OBJECT_CACHES.name(cache))).text("\"")
}

/// The likeliest first.
const CAUSES: &str = "a write to freed memory, or behind the end of an object, has changed their list \
    (CRATON_OPTIONS=debug=all finds such writes), or a signal handler that allocates has interrupted malloc or free, \
    which signal-safety(7) forbids, or has left it by longjmp";

fn about_list(class: usize, objects: u32) -> Line {
    let line = Line::new().text("craton: ").number(objects.into()).text(" of this thread's free objects of ");
    line.number(size_class::size_of_class(class) as u64).text(" bytes ").text(if objects == 1 { "was" } else { "were" })
}

/// The program's view of the heap is wrong.
#[cold]
pub(crate) fn misuse(call: Call, pointer: *mut u8, misuse: Misuse) -> ! {
    let line = Line::new().text("craton: ").text(call).text("(").address(pointer as usize).text("): ");
    let only_looked_at = matches!(call, "realloc" | "reallocarray" | "malloc_usable_size");
    let text = match misuse {
        Misuse::Freed { size } => {
            let what = if only_looked_at { "already freed: it was a " } else { "double free of a " };
            line.text(what).number(size as u64).text("-byte object")
        }
        Misuse::WrongSize { given, size } => {
            line.text("size ").number(given as u64).text(" is not that of a ").number(size as u64).text("-byte object")
        }
        Misuse::WrongAlign { given } if given.is_power_of_two() => {
            line.text("does not lie at a multiple of the alignment ").number(given as u64)
        }
        Misuse::WrongAlign { given } => line.text("the alignment ").number(given as u64).text(" is not a power of two"),
        Misuse::OtherHeap => line.text("not an object of this heap"),
        Misuse::NoHeap => line.text("not a heap of Craton"),
        Misuse::HeapDestroyed => line.text("this heap has been destroyed"),
        Misuse::HeapStays => line.text("a heap of the library itself cannot be destroyed"),
        Misuse::NoCache => line.text("not an object cache of Craton"),
        Misuse::CacheDestroyed => line.text("this object cache has been destroyed"),
        Misuse::OfCache { cache } => {
            with_name(line.text("an object of cache "), cache).text(": give it back with craton_cache_free")
        }
        Misuse::OtherCache { its, given } => {
            with_name(with_name(line.text("an object of cache "), its).text(", not of cache "), given)
        }
        Misuse::NotCached { given } => {
            with_name(line.text("not an object of cache "), given).text(": malloc or a heap has it")
        }
        Misuse::Inside { offset, size } => {
            line.text("not the start of an object: it points ").size(offset).text(" into an object of ").size(size)
        }
        Misuse::InsideLarge { start, size } => {
            line.text("points into a large object, which starts at ").address(start).text(" and has ").size(size)
        }
        Misuse::Unallocated => {
            line.text("points into memory that is not allocated: it was freed already, or never was an object")
        }
        Misuse::Foreign => foreign(line.text("not allocated by Craton"), pointer as usize),
    };
    end(kind(misuse, only_looked_at), text)
}

/// As the debugging kit names it (docs/debugging.md).
fn kind(misuse: Misuse, only_looked_at: bool) -> &'static str {
    match misuse {
        Misuse::Freed { .. } | Misuse::Unallocated if only_looked_at => "use-after-free",
        Misuse::Freed { .. } | Misuse::Unallocated => "double-free",
        Misuse::WrongSize { .. } | Misuse::WrongAlign { .. } => "size-mismatch",
        Misuse::Inside { .. } | Misuse::InsideLarge { .. } | Misuse::Foreign => "bad-free",
        Misuse::OtherHeap
        | Misuse::NoHeap
        | Misuse::HeapDestroyed
        | Misuse::HeapStays
        | Misuse::NoCache
        | Misuse::CacheDestroyed
        | Misuse::OfCache { .. }
        | Misuse::OtherCache { .. }
        | Misuse::NotCached { .. } => "wrong-cache",
    }
}

fn foreign(line: Line, pointer: usize) -> Line {
    let mut namespaces = 0;
    loaded::in_namespaces(|number, _| {
        namespaces = number;
        false
    });
    if namespaces > 0 {
        let line = line.text("; a library loaded by dlmopen has another allocator, ");
        return line.text("which must free its objects");
    }
    if maps::at(pointer, |mapping| mapping.name == b"[heap]") == Some(true) {
        let line = line.text("; it is in the heap of the C library's malloc: perhaps not an object's start, ");
        return line.text("or a library is linked with that malloc (dlopen with RTLD_DEEPBIND)");
    }
    line
}
