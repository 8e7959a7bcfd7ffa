//! What caches refill from and flush to (TEMERAIRE §3, Bonwick94 §3).
//!
//! A refill takes a batch from the transfer cache, else objects of the home's slabs, else, before
//! the heap would grow, another shard's.
//!
//! **Unsafe.** Hands slabs the region's address, and returns objects that caches gave up.

use crate::heap::{Heap, Layout};
use crate::hooks::{Damage, Hooks};
use crate::misuse::Misuse;
use crate::morph::Recut;
use crate::shard::{Shard, Transfer};
use crate::shuffle::{Wrong, shuffle};
use crate::size_class::{self, CLASSES};
use crate::spans::{Marked, NoSpans};
use craton_base::atomic::Ordering;
use craton_base::{Clock, PageId, Pages, Platform, SpanSource};
use craton_slab::{Chain, Freed, Marks, SlabCache, end};

/// With more free memory a shard takes a slab first.
const MUCH_FREE: Pages = Pages(128);

impl<F: Platform, C: Clock, H: Hooks> Heap<F, C, H> {
    /// Empty without memory.
    pub fn take(&self, home: usize, class: usize, want: u32) -> Chain {
        let shards = self.shards();
        if shards.len() > 1 && want == size_class::batch(class) && Transfer::keeps(class) {
            // The home's lines may still be in this CPU's cache.
            let (before, from) = shards.split_at(home);
            if let Some(batch) = from.iter().chain(before).find_map(|s| s.transfer.take(class)) {
                self.shards[home].counts.count::<H>(batch.len());
                return batch;
            }
        }
        let mut chain = Chain::EMPTY;
        if shards.len() > 1 {
            let grows = self.would_grow() && self.complete_pages() == Pages(0);
            let others = (0..shards.len()).filter(|other| *other != home && grows);
            for shard in core::iter::once(home).chain(others) {
                chain = self.take_from(&mut self.lock_slabs(shard, class), class, want, &mut NoSpans);
                if !chain.is_empty() {
                    break;
                }
            }
        }
        if chain.is_empty() {
            let Layout { base, records, .. } = self.layout();
            let mut source = Recut::new(Marked { heap: self, home, class });
            let mut slabs = self.lock_slabs(home, class);
            // SAFETY: base, records and source are this heap's; the slabs are locked.
            let taken = unsafe { slabs.alloc(want, *base as *mut u8, records, &mut source, self.marks(class)) };
            chain = taken.unwrap_or_else(|at| H::corrupt(Damage::NotFree { class, at }));
            source.pass_rest(&mut slabs);
        }
        self.shards[home].counts.count::<H>(chain.len());
        self.shuffled(home, class, chain)
    }

    /// Freed objects were shuffled before.
    fn shuffled(&self, home: usize, class: usize, chain: Chain) -> Chain {
        if !self.is_hardened() || !chain.has_row() || chain.len() < 2 {
            return chain;
        }
        let mut random = self.shards[home].random.of(&self.layout().key, home as u64);
        let (marks, (first, n)) = (self.marks(class), chain.into_raw());
        // SAFETY: the chain's objects; other addresses bear no mark.
        let dealt = unsafe { shuffle(&mut random, first, n, |object| marks.is_here(object) && marks.is_set(object)) };
        self.shards[home].random.keep(random);
        dealt.unwrap_or_else(|wrong| {
            let at = if let Wrong::NotFree(at) = wrong { at } else { end() };
            H::corrupt(Damage::NotFree { class, at })
        })
    }

    fn would_grow(&self) -> bool {
        self.free_pages.load(Ordering::Relaxed) < MUCH_FREE.0
    }

    pub fn passes_on(&self, home: usize, class: usize) -> bool {
        self.shards().len() > 1 && self.shards[home].transfer.has_room(class)
    }

    /// # Safety
    /// As [`Heap::give`].
    pub unsafe fn pass_on_or_give(&self, home: usize, class: usize, chain: Chain) {
        let left = if self.shards().len() > 1 { self.shards[home].transfer.put(class, chain) } else { Err(chain) };
        if let Err(chain) = left {
            // SAFETY: by the contract.
            unsafe { self.give(class, chain) };
        }
    }

    /// # Safety
    /// As [`Heap::give`].
    pub unsafe fn give_marked(&self, class: usize, object: *mut u8) {
        let mut chain = Chain::EMPTY;
        // SAFETY: by the contract.
        unsafe {
            chain.push(object);
            self.give(class, chain);
        }
    }

    /// Aborts if one never was an object.
    ///
    /// # Safety
    /// The caller gives up objects of this class and heap.
    pub unsafe fn give(&self, class: usize, chain: Chain) {
        let (first, n) = chain.into_raw();
        // SAFETY: by the contract.
        unsafe { self.give_first(class, first, n) };
    }

    /// Returns the rest.
    ///
    /// # Safety
    /// As [`Heap::give`], for the first `n` of a list of at least `n`.
    pub unsafe fn give_first(&self, class: usize, first: *mut u8, n: u32) -> *mut u8 {
        // An allocating signal handler may have shortened the list.
        if n == 0 || first == end() {
            return first;
        }
        let owner_of = |object: *mut u8| match self.shards().len() {
            1 => 0,
            _ => {
                // A program may have overwritten the links.
                let Some(page) = self.page_of(object as usize) else {
                    H::corrupt(Damage::NotFree { class, at: object })
                };
                self.layout().records[size_class::geometry(class).slab_of(page).0 as usize].owner()
            }
        };
        // SAFETY: by the contract.
        let (rest, mut strays) = unsafe { self.give_to(owner_of(first), class, first, n) };
        // Each turn serves an owner.
        while !strays.is_empty() {
            let (first, n) = strays.into_raw();
            // SAFETY: a separate list.
            (_, strays) = unsafe { self.give_to(owner_of(first), class, first, n) };
        }
        let _ = strays.into_raw();
        rest
    }

    /// # Safety
    /// As [`Heap::give_first`].
    unsafe fn give_to(&self, owner: usize, class: usize, first: *mut u8, n: u32) -> (*mut u8, Chain) {
        let mut source = Marked { heap: self, home: owner, class };
        let Layout { base, records, .. } = self.layout();
        let is_ours = |slab: PageId| records[slab.0 as usize].owner() == owner;
        let mut slabs = self.lock_slabs(owner, class);
        // SAFETY: as in `take`, and by the contract.
        let freed =
            unsafe { slabs.free_first(first, n, is_ours, *base as *mut u8, records, &mut source, self.marks(class)) };
        drop(slabs);
        match freed {
            Ok(Freed { rest, strays, moved }) => {
                // SAFETY: by the contract.
                unsafe { self.give_moved(class, moved) };
                (rest, strays)
            }
            Err(at) => self.reject(class, at),
        }
    }

    /// If the address bears the mark, the program freed it.
    #[cold]
    fn reject(&self, class: usize, at: *mut u8) -> ! {
        let marks = self.marks(class);
        H::corrupt(if marks.is_here(at) && marks.is_set(at) {
            Damage::Object { object: at, misuse: Misuse::Unallocated }
        } else {
            Damage::NotFree { class, at }
        })
    }

    pub(crate) fn drain_transfers(&self) {
        let shards = self.shards();
        if shards.len() > 1 {
            for shard in shards {
                // SAFETY: the batches hold this heap's objects.
                shard.transfer.drain(|class, batch| unsafe { self.give(class, batch) });
            }
        }
    }

    /// Bytes of live and cached objects.
    pub fn bytes_out(&self) -> u64 {
        let out: u64 =
            (1..=CLASSES).map(|c| self.class_stats(c).objects_out * size_class::size_of_class(c) as u64).sum();
        let old = self.morphs.lock().old_bytes();
        let between = |shard: &Shard| {
            (shard.transfer.bytes() + if self.is_hardened() { shard.waiting.bytes() } else { 0 }) as u64
        };
        (out + old).saturating_sub(self.shards().iter().map(between).sum())
    }

    /// The caller owns the slabs or has locked them.
    pub fn take_from(&self, cache: &mut SlabCache, class: usize, want: u32, source: &mut impl SpanSource) -> Chain {
        let (layout, marks) = (self.layout(), self.marks(class));
        // SAFETY: as in `take`; the caller owns the slabs.
        let taken = unsafe { cache.alloc(want, layout.base as *mut u8, &layout.records, source, marks) };
        taken.unwrap_or_else(|at| H::corrupt(Damage::NotFree { class, at }))
    }

    /// The error is no object.
    ///
    /// # Safety
    /// The caller gives up objects of this cache.
    pub unsafe fn give_back(
        &self,
        cache: &mut SlabCache,
        class: usize,
        chain: Chain,
        source: &mut impl SpanSource,
    ) -> Result<(), *mut u8> {
        let layout = self.layout();
        // SAFETY: as in `take_from`, and by the contract.
        unsafe { cache.free(chain, layout.base as *mut u8, &layout.records, source, self.marks(class)) }
    }

    /// # Safety
    /// The caller gives the objects up.
    pub unsafe fn give_moved(&self, class: usize, mut moved: Chain) {
        while let Some(object) = moved.pop() {
            let page = self.page_of(object as usize);
            // SAFETY: by the contract.
            match page.and_then(|page| unsafe { self.give_mixed(object, page) }) {
                Some(true) => (),
                Some(false) => H::corrupt(Damage::Object { object, misuse: Misuse::Unallocated }),
                // SAFETY: by the contract; the slab has settled.
                None => unsafe { self.give_marked(class, object) },
            }
        }
    }
}
