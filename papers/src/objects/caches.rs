//! Craton's object caches as a kernel's heap: other objects come from caches by size (Bonwick94
//! §3.1).
//!
//! **Unsafe.** Frees objects that the caller claims to own.

use super::Arena;
use crate::kernel::{Heap, Kind};
use craton_base::PAGE_SIZE;
use craton_slab::object::{ObjectLayout, ObjectSlabs};
use craton_slab::size_class::{class_of, size_of_class};
use std::collections::HashMap;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Policy {
    /// Otherwise each kind has a cache.
    pub rare_by_size: bool,
    /// Complete slabs idle for this long are freed. 0: at once; `u64::MAX`: never.
    pub interval_s: u64,
    pub page: usize,
}

impl Policy {
    pub const USUAL: Self = Self { rare_by_size: true, interval_s: 15, page: PAGE_SIZE };
}

/// The sum is the fragmentation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Unasked {
    /// Within live objects, with links of constructed ones.
    pub rounding: usize,
    /// Of slabs with live objects, with records there.
    pub ends: usize,
    /// Free objects on slabs with live ones.
    pub partial: usize,
    /// Slabs without live objects.
    pub complete: usize,
    /// Records apart from slabs, tables, and descriptions of caches.
    pub described: usize,
}

impl Unasked {
    pub fn named(self) -> [(&'static str, usize); 5] {
        [
            ("rounding", self.rounding),
            ("slabs' ends", self.ends),
            ("partial slabs", self.partial),
            ("complete slabs", self.complete),
            ("records, tables", self.described),
        ]
    }
}

#[derive(Debug)]
pub struct Caches {
    arena: Arena,
    caches: Vec<ObjectSlabs>,
    of: Vec<usize>,
    interval_s: u64,
    seconds: u64,
}

impl Caches {
    pub fn new(arena: Arena, kinds: &[Kind], policy: Policy) -> Result<Self, String> {
        let (mut caches, mut of, mut by_class) = (Vec::new(), Vec::new(), HashMap::new());
        for kind in kinds {
            let mut add = |bytes: usize, constructed: bool| {
                let layout = ObjectLayout::of_pages(bytes, 8, constructed, policy.page)
                    .map_err(|why| format!("{}: {why}", kind.name))?;
                caches.push(ObjectSlabs::new(layout));
                Ok::<usize, String>(caches.len() - 1)
            };
            let class = class_of(kind.bytes);
            let cache = match by_class.get(&class).filter(|_| kind.rare && policy.rare_by_size) {
                Some(cache) => *cache,
                None if kind.rare && policy.rare_by_size => {
                    let cache = add(size_of_class(class), false)?;
                    by_class.insert(class, cache);
                    cache
                }
                None => add(kind.bytes, kind.constructed)?,
            };
            of.push(cache);
        }
        Ok(Self { arena, caches, of, interval_s: policy.interval_s, seconds: 0 })
    }

    pub fn unasked(&self, requested: usize) -> Unasked {
        let mut parts = Unasked::default();
        let (mut out, mut slabs_bytes) = (0, 0);
        for slabs in &self.caches {
            let (stats, layout) = (slabs.stats(), slabs.layout());
            let (complete, in_use) = (slabs.complete() as usize, slabs.in_use() as usize);
            let whole = stats.slabs as usize - complete;
            parts.complete += complete * layout.bytes();
            parts.ends += whole * layout.waste();
            parts.partial += (whole * layout.capacity() - in_use) * layout.stride();
            out += in_use * layout.stride();
            slabs_bytes += stats.slabs as usize * layout.bytes();
        }
        parts.rounding = out - requested;
        parts.described = self.consumed() - slabs_bytes;
        parts
    }

    fn reap(&mut self, all: bool) {
        for slabs in &mut self.caches {
            let keep = if all { 0 } else { slabs.complete() - slabs.idle() };
            // SAFETY: the arena supplies all slabs; no object needs a destructor.
            unsafe { slabs.reap(keep, &mut self.arena, |_| ()) };
        }
    }
}

impl Heap for Caches {
    #[inline]
    fn get(&mut self, kind: usize, _: usize) -> Option<*mut u8> {
        // SAFETY: the arena supplies all.
        unsafe { self.caches[self.of[kind]].alloc(&mut self.arena) }.map(|taken| taken.object())
    }

    #[inline]
    unsafe fn put(&mut self, kind: usize, object: *mut u8, _: usize) {
        let slabs = &mut self.caches[self.of[kind]];
        let constructed = slabs.layout().is_constructed();
        // SAFETY: by the contract.
        unsafe { slabs.free(object, constructed) }.expect("it is an object of this cache that is out");
    }

    fn second(&mut self) {
        self.seconds += 1;
        match self.interval_s {
            u64::MAX => {}
            0 => self.reap(true),
            interval => {
                if self.seconds.is_multiple_of(interval) {
                    self.caches.iter_mut().for_each(ObjectSlabs::turn);
                }
                self.reap(false);
            }
        }
    }

    fn consumed(&self) -> usize {
        self.arena.consumed() + self.caches.len() * size_of::<ObjectSlabs>()
    }

    fn unasked(&self, requested: usize) -> Option<Unasked> {
        Some(self.unasked(requested))
    }

    fn check(&self) -> Result<(), String> {
        self.caches.iter().try_for_each(|slabs| slabs.check().map_err(|broken| format!("{broken:?}")))
    }
}
