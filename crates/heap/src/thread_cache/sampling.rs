//! Which request becomes a sample of the heap profile.
//!
//! **What.** A countdown of requested bytes passes between two samples. A refill and a list that
//! counts as full know the number of requests since the last one ([`super::count`]), so that pops
//! and pushes need no instruction. When the countdown has ended, one of these requests is meant,
//! and the class *awaits* one of as many that follow, by chance.
//!
//! To count up to it, free objects go from the class's list to another, [`Awaited::list`], to which
//! the cache's tables lead the class's requests, but which no free fills. So it is empty after
//! exactly as many requests as it had objects, and none of them is slow.
//!
//! Without it, the request after a refill would be the sample: in a program that allocates two
//! objects and frees the first, always the first, since the second takes the one that the first
//! gave back. Of twenty in turns of which one stays, never the one that stays.
//!
//! **Threads.** A signal handler finds each list whole. If it interrupts a pop of the awaited list,
//! allocates and frees, an object is on two lists, and the next slow request reports it. Once a
//! handler was seen to allocate, each request on the way to a sample is slow instead.
//!
//! **Cost.** Some instructions for each request on the way to a sample, and some 200 each time that
//! the list has to be filled; none for frees.
//!
//! **Unsafe.** Moves objects between lists; exchanges an object of a list for one that goes out.

use super::count::{ONE, POPPED, WEAR};
use super::lists::next;
use super::{List, MAX_QUICK, ThreadCache};
use crate::hooks::{Countdown, Damage, Hooks};
use crate::mark::clear_head;
use crate::size_class;
use core::mem::offset_of;
use core::ptr::null_mut;
use craton_base::{PAGE_SHIFT, PAGE_SIZE};
use craton_slab::end;

/// Classes that await their samples at once.
const CLASSES_AWAITED: usize = 4;

/// Most requests up to a sample: of fixed patterns that are longer, it may see some requests more
/// often than others.
const MOST: u32 = 512;
/// The same in bytes, where these are more than [`LEAST`] objects: between two samples there are
/// few requests of large objects.
const MOST_BYTES: usize = 256 << 10;
const LEAST: u32 = 32;
/// The same for each object that the list has: refilling it is most of the cost.
const MOST_A_FREE_OBJECT: u32 = 16;

/// Bytes before a page's end that are near enough.
const NEAR_END: usize = PAGE_SIZE / 64;

/// A class on the way to its sample.
#[repr(C, align(64))]
pub(super) struct Awaited {
    /// Its `room` counts the pops, by [`POPPED`].
    list: List,
    /// Bytes for which the sample stands.
    bytes: u64,
    /// Objects that the list was given.
    given: u32,
    /// Requests after these, up to the sample's.
    left: u32,
    /// Or 0.
    class: u32,
}

pub(super) struct Sampling {
    /// Bytes before the next sample, and what its end stands for.
    countdown: Countdown,
    /// Of `awaited`, in use.
    used: u32,
    awaited: [Awaited; CLASSES_AWAITED],
}

/// The kinds of slow requests of a class.
pub enum Slow {
    /// One like others.
    Usual,
    /// One on the way to a sample, which this object serves.
    Served(*mut u8),
    /// A sample, which stands for these bytes.
    Sample(u64),
}

/// For readers of another process's memory.
pub(super) const SHAPE: [(&str, usize); 5] = [
    ("thread.awaited", offset_of!(ThreadCache, sampling) + offset_of!(Sampling, awaited)),
    ("thread.awaited.bytes", size_of::<Awaited>()),
    ("thread.awaited.count", CLASSES_AWAITED),
    ("thread.awaited.class", offset_of!(Awaited, class)),
    ("thread.awaited.given", offset_of!(Awaited, given)),
];

// Readers find the list's fields at their places in a list.
const _: () = assert!(offset_of!(Awaited, list) == 0);

impl Awaited {
    const NONE: Self = Self { list: List::NONE, bytes: 0, given: 0, left: 0, class: 0 };

    /// Objects that are still on the list.
    fn rest(&self) -> u32 {
        self.given.saturating_sub((self.list.room / POPPED) as u32)
    }
}

impl Sampling {
    pub(super) const NEW: Self = Self {
        countdown: Countdown { left: i64::MAX, bytes: 0 },
        used: 0,
        awaited: [const { Awaited::NONE }; CLASSES_AWAITED],
    };

    fn find(&self, class: usize) -> Option<usize> {
        if self.used == 0 {
            return None;
        }
        self.awaited.iter().position(|a| a.class as usize == class)
    }

    /// Bytes of free objects.
    pub(super) fn bytes(&self) -> usize {
        let used = self.awaited.iter().filter(|a| a.class > 0);
        used.map(|a| a.rest() as usize * size_class::size_of_class(a.class as usize)).sum()
    }
}

/// Among how many next requests chance chooses, where a countdown has ended in the last `requests`
/// and the list has or gets `ready` objects. Among more, the newest objects of a program that grows
/// in many classes would wait for their samples.
fn choice(class: usize, requests: u32, ready: u32) -> u32 {
    let by_bytes = (MOST_BYTES / size_class::size_of_class(class)) as u32;
    let most = MOST.min(ready.saturating_mul(MOST_A_FREE_OBJECT)).min(by_bytes).max(LEAST);
    requests.clamp(1, most)
}

impl ThreadCache {
    pub fn set_countdown(&mut self, countdown: Countdown) {
        self.sampling.countdown = countdown;
    }

    /// Counts requests of a class, whose list has or gets `ready` objects. If the countdown has
    /// ended, the class awaits its sample.
    #[inline]
    pub(crate) fn count_down<H: Hooks>(&mut self, class: usize, requests: u32, ready: u32) {
        let bytes = u64::from(requests) * size_class::size_of_class(class) as u64;
        self.sampling.countdown.left -= bytes as i64;
        if self.sampling.countdown.left < 0 {
            self.end_countdown::<H>(class, requests, ready);
        }
    }

    #[cold]
    fn end_countdown<H: Hooks>(&mut self, class: usize, requests: u32, ready: u32) {
        // A hardened cache counts a refill's requests apart from those of turns between refills.
        let among = choice(class, if self.is_hardened() { u32::MAX } else { requests }, ready);
        let ended = H::count_ended(class, self.sampling.countdown, among);
        self.sampling.countdown = ended.next;
        if ended.bytes == 0 {
            return;
        }
        if let Some(n) = self.sampling.find(class) {
            self.sampling.awaited[n].bytes += ended.bytes;
            return;
        }
        let unused = self.sampling.awaited.iter().position(|a| a.class == 0);
        let n = unused.unwrap_or_else(|| {
            // It may await a request that never comes.
            let n = ended.nth as usize % CLASSES_AWAITED;
            self.forgo::<H>(self.sampling.awaited[n].class as usize);
            n
        });
        let list = List { secret: self.lists[class].secret, ..List::NONE };
        let awaited = Awaited { list, bytes: ended.bytes, given: 0, left: ended.nth, class: class as u32 };
        self.sampling.awaited[n] = awaited;
        self.sampling.used += 1;
        let at = offset_of!(Self, sampling) + offset_of!(Sampling, awaited) + n * size_of::<Awaited>();
        self.lead(class, at as u16);
    }

    /// Whether some class awaits its sample.
    #[inline]
    pub fn awaits_some(&self) -> bool {
        self.sampling.used > 0
    }

    #[cfg(test)]
    pub fn awaits(&self, class: usize) -> bool {
        self.sampling.find(class).is_some()
    }

    #[cfg(test)]
    pub fn awaited_head(&self, class: usize) -> *mut u8 {
        self.sampling.awaited[self.sampling.find(class).unwrap()].list.head
    }

    /// As if further pops had been counted.
    #[cfg(test)]
    pub fn miscount_awaited(&mut self, class: usize, pops: i32) {
        let n = self.sampling.find(class).unwrap();
        self.sampling.awaited[n].list.room += pops * POPPED;
    }

    /// Leads a class's requests to its own list again; returns what its sample stands for.
    #[cold]
    fn end_wait(&mut self, n: usize) -> u64 {
        let awaited = &mut self.sampling.awaited[n];
        let first = core::mem::replace(&mut awaited.list.head, end());
        let (class, bytes, rest) = (awaited.class as usize, awaited.bytes, awaited.rest());
        *awaited = Awaited::NONE;
        self.sampling.used -= 1;
        if first != end() {
            self.restore(class, first);
            // They count as popped and pushed: the pops may have been counted meanwhile.
            self.source_mut(class).room -= rest as i32 * ONE;
        }
        self.lead(class, self.source_at(class));
        bytes
    }

    /// Ends the wait for a class's sample, which a later one includes.
    #[inline]
    pub fn forgo<H: Hooks>(&mut self, class: usize) {
        if let Some(n) = self.sampling.find(class) {
            let bytes = self.end_wait(n);
            H::forgone(class, bytes);
        }
    }

    /// Counts a slow request of a class, and tells its kind.
    ///
    /// # Safety
    /// `this` is the calling thread's cache.
    #[inline]
    pub unsafe fn slow<H: Hooks>(this: *mut Self, class: usize) -> Slow {
        // SAFETY: by the contract.
        match unsafe { (*this).sampling.find(class) } {
            None => Slow::Usual,
            // SAFETY: as above.
            Some(n) => unsafe { Self::slow_awaited::<H>(this, n) },
        }
    }

    /// # Safety
    /// As [`ThreadCache::slow`].
    #[cold]
    unsafe fn slow_awaited<H: Hooks>(this: *mut Self, n: usize) -> Slow {
        // SAFETY: by the contract.
        let cache = unsafe { &mut *this };
        cache.expect_used_up::<H>(n);
        let awaited = &mut cache.sampling.awaited[n];
        awaited.left = awaited.left.saturating_sub(1);
        if awaited.left == 0 {
            return Slow::Sample(cache.end_wait(n));
        }
        let class = awaited.class as usize;
        let at = cache.source_at(class).into();
        // SAFETY: as above.
        let object = unsafe { Self::pop_at(this, at) };
        if object.is_null() {
            // Its refill leads on.
            return Slow::Usual;
        }
        cache.lead_on::<H>(class);
        Slow::Served(object)
    }

    /// T5: the list is empty after as many pops as it had objects.
    fn expect_used_up<H: Hooks>(&mut self, n: usize) {
        let Awaited { list, given, class, .. } = self.sampling.awaited[n];
        let class = class as usize;
        if list.head != end() {
            H::corrupt(Damage::NotFree { class, at: list.head });
        }
        match list.room / POPPED - given as i32 {
            0 => (),
            twice @ 1.. => H::corrupt(Damage::GivenTwice { class, objects: twice.unsigned_abs() }),
            lost => H::corrupt(Damage::Lost { class, objects: lost.unsigned_abs() }),
        }
        let awaited = &mut self.sampling.awaited[n];
        (awaited.list.room, awaited.given) = (0, 0);
    }

    /// Gives a class that awaits its sample the objects for the requests before it, as far as its
    /// list has them.
    #[inline]
    pub(crate) fn lead_on<H: Hooks>(&mut self, class: usize) {
        if self.awaits_some() {
            self.lead_on_awaited::<H>(class);
        }
    }

    #[cold]
    fn lead_on_awaited<H: Hooks>(&mut self, class: usize) {
        let Some(n) = self.sampling.find(class) else { return };
        let Awaited { given, left, .. } = self.sampling.awaited[n];
        if given > 0 || H::handlers_allocate() {
            return;
        }
        let chain = self.drain::<H>(class, left.saturating_sub(1));
        if chain.is_empty() {
            return;
        }
        let (head, len) = chain.into_raw();
        // They count as popped.
        self.source_mut(class).room -= len as i32 * WEAR;
        let awaited = &mut self.sampling.awaited[n];
        (awaited.given, awaited.left) = (len, left - len);
        awaited.list.head = head;
    }

    /// Leads a class's requests to a list.
    fn lead(&mut self, class: usize, to: u16) {
        self.sources[class] = to;
        let first = if class == 1 { 0 } else { size_class::size_of_class(class - 1) + 1 };
        if first <= MAX_QUICK {
            self.offsets[first..=size_class::size_of_class(class)].fill(to);
        }
    }

    /// Exchanges an object that went out for the one of it and the first `most` objects of the list
    /// that lies nearest to the end of its page, which goes out instead; none on the page `without`
    /// (an address divided).
    ///
    /// # Safety
    /// The object is of the class, went out, and has not been used.
    pub(crate) unsafe fn exchange(&mut self, class: usize, object: *mut u8, most: u32, without: usize) -> *mut u8 {
        let seal = self.seal(class);
        let near = PAGE_SIZE - size_class::size_of_class(class).clamp(NEAR_END, PAGE_SIZE);
        let in_page = |object: *mut u8| object as usize % PAGE_SIZE;
        let is_out = |object: *mut u8| object as usize >> PAGE_SHIFT == without;
        // A signal handler finds an empty list meanwhile.
        let first = core::mem::replace(&mut self.source_mut(class).head, end());
        let mut greatest = if is_out(object) { 0 } else { in_page(object) };
        let (mut before, mut best) = (null_mut::<u8>(), object);
        let (mut last, mut at, mut n) = (null_mut::<u8>(), first, 0);
        // SAFETY: free objects of the list, as far as they bear their marks.
        unsafe {
            while n < most && greatest < near && at != end() && seal.is_on(at) {
                if in_page(at) > greatest && !is_out(at) {
                    (before, best, greatest) = (last, at, in_page(at));
                }
                (last, at, n) = (at, next(at), n + 1);
            }
        }
        let mut head = first;
        if best != object {
            // SAFETY: `best` is a free object of the list; `object` takes its place there.
            unsafe {
                object.cast::<*mut u8>().write(next(best));
                seal.set(object);
                if before.is_null() {
                    head = object;
                } else {
                    before.cast::<*mut u8>().write(object);
                }
                clear_head(best);
            }
        }
        self.restore(class, head);
        best
    }
}
