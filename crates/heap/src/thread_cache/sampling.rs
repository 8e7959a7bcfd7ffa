//! Which request becomes a sample of the heap profile.
//!
//! **What.** A countdown of requested bytes passes between two samples; the request that ends it is
//! the sample. Pops and pushes need no instruction for that, since the requests are counted before
//! they come: a refill, a flush, a turn or a sample counts as many *ahead* as the list may hold. If
//! the countdown ends among them, it is known which request does so, and the class *awaits* it.
//!
//! To count up to it, free objects go from the class's list to another, [`Awaited::list`], to which
//! the cache's tables lead the class's requests, but which no free fills. So it is empty after
//! exactly as many requests as it had objects, and none of them is slow.
//!
//! Requests beyond these, as of a program that pops and pushes for ever, are counted when they are
//! past. If the countdown has ended among these, the class awaits one of as many that follow, by
//! chance: else a program that allocates two objects and frees the first would always have the
//! first as its sample.
//!
//! Requests that were counted ahead and do not come, since the thread ends, have no sample: chance
//! decides anew about others instead. A sample for requests of the past stays due.
//!
//! **Threads.** A signal handler finds each list whole. If it interrupts a pop of the awaited list,
//! allocates and frees, an object is on two lists, and the next slow request reports it. Once a
//! handler was seen to allocate, each request on the way to a sample is slow instead.
//!
//! **Cost.** Some 20 instructions a flush and a refill; for each request on the way to a sample
//! eight, or none where refills bring the objects; and some 200 each time that the list has to be
//! filled. None for frees.
//!
//! **Unsafe.** Moves objects between lists; exchanges an object of a list for one that goes out.

use super::count::{ONE, POPPED, WEAR};
use super::lists::next;
use super::{List, MAX_BYTES, MAX_QUICK, ThreadCache};
use crate::hooks::{Countdown, Damage, Hooks};
use crate::mark::clear_head;
use crate::size_class::{self, MARKS};
use core::mem::offset_of;
use core::ptr::null_mut;
use craton_base::{PAGE_SHIFT, PAGE_SIZE};
use craton_slab::{Chain, end};

/// Classes that await their samples at once. Of those without room, requests are counted when they
/// are past: with 8, a program of 40 classes saw objects that stay at .7 to 1.1 of their size.
const CLASSES_AWAITED: usize = 44;

/// Most requests up to a sample for past ones: of fixed patterns that are longer, it may see some
/// requests more often than others.
const MOST: u32 = 512;
/// The same in bytes, where these are more than [`LEAST`] objects: between two samples there are
/// few requests of large objects.
const MOST_BYTES: usize = 256 << 10;
const LEAST: u32 = 32;
/// The same for each object that the list has: refilling it is most of the cost.
const MOST_A_FREE_OBJECT: u32 = 16;
/// Bytes of requests that are counted ahead: most requests of short threads.
const LEAST_AHEAD: u32 = 8 << 10;
const LEAST_REQUESTS_AHEAD: u32 = 8;
const MOST_AHEAD: u32 = MAX_BYTES as u32;
/// Most requests ahead for each object that the list has.
const MOST_AHEAD_A_FREE_OBJECT: u32 = 64;

/// Bytes before a page's end that are near enough.
const NEAR_END: usize = PAGE_SIZE / 64;

/// A class on the way to its sample.
#[repr(C, align(64))]
pub(super) struct Awaited {
    /// Its `room` counts the pops, by [`POPPED`].
    list: List,
    /// Bytes for which the sample stands, since a countdown ended in past requests.
    bytes: u64,
    /// The same, since its own request ends one.
    bytes_ahead: u64,
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
    /// Bytes for which the last refill's own request stands, if it is a sample; else 0.
    refill: u64,
    awaited: [Awaited; CLASSES_AWAITED],
    /// Of these, in use.
    used: usize,
    /// By class: bytes of requests to come that the countdown has counted.
    ahead: [u32; MARKS],
}

/// The kinds of slow requests of a class.
pub enum Slow {
    /// One like others.
    Usual,
    /// One on the way to a sample, which this object serves.
    Served(*mut u8),
    /// A sample, which stands for these bytes: of this object, or of one to come where it is null.
    Sample(*mut u8, u64),
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
    const NONE: Self = Self { list: List::NONE, bytes: 0, bytes_ahead: 0, given: 0, left: 0, class: 0 };

    /// Objects that are still on the list.
    fn rest(&self) -> u32 {
        self.given.saturating_sub((self.list.room / POPPED) as u32)
    }
}

impl Sampling {
    pub(super) const NEW: Self = Self {
        countdown: Countdown { left: i64::MAX, bytes: 0 },
        refill: 0,
        awaited: [const { Awaited::NONE }; CLASSES_AWAITED],
        used: 0,
        ahead: [0; MARKS],
    };

    /// Bytes of free objects.
    pub(super) fn bytes(&self) -> usize {
        let used = self.awaited.iter().filter(|a| a.class > 0);
        used.map(|a| a.rest() as usize * size_class::size_of_class(a.class as usize)).sum()
    }
}

/// Among how many next requests chance chooses, where a countdown has ended in the last `requests`
/// and the list has or gets `ready` objects.
fn choice(class: usize, requests: u32, ready: u32) -> u32 {
    let by_bytes = (MOST_BYTES / size_class::size_of_class(class)) as u32;
    let most = MOST.min(ready.saturating_mul(MOST_A_FREE_OBJECT)).min(by_bytes).max(LEAST);
    requests.clamp(1, most)
}

impl ThreadCache {
    const AWAITED_AT: usize = offset_of!(Self, sampling) + offset_of!(Sampling, awaited);

    pub fn set_countdown(&mut self, countdown: Countdown) {
        self.sampling.countdown = countdown;
    }

    /// Counts requests of a class, whose list has or gets `ready` objects. If the countdown has
    /// ended, the class awaits its sample.
    #[inline]
    pub(crate) fn count_down<H: Hooks>(&mut self, class: usize, requests: u32, ready: u32) {
        let bytes = requests.saturating_mul(size_class::size_of_class(class) as u32);
        if !self.counts_ahead() {
            return self.count_past::<H>(class, bytes, ready);
        }
        let before = self.sampling.ahead[class];
        self.sampling.ahead[class] = before.saturating_sub(bytes);
        self.count_past::<H>(class, bytes.saturating_sub(before), ready);
        self.count_ahead::<H>(class, bytes, ready);
    }

    #[inline]
    fn count_past<H: Hooks>(&mut self, class: usize, bytes: u32, ready: u32) {
        self.sampling.countdown.left -= i64::from(bytes);
        if self.sampling.countdown.left < 0 {
            self.end_countdown::<H>(class, bytes, ready);
        }
    }

    /// Not before the end of the first countdown, which is no sample: small programs do without.
    #[inline]
    pub(crate) fn counts_ahead(&self) -> bool {
        self.sampling.countdown.bytes > 0
    }

    /// Counts an empty list's pops, and the request that now gets `ready` objects for it.
    #[inline]
    pub(crate) fn count_refill<H: Hooks>(&mut self, class: usize, pops: u32, ready: u32) {
        let bytes = (pops + 1).saturating_mul(size_class::size_of_class(class) as u32);
        if !self.counts_ahead() {
            return self.count_past::<H>(class, bytes, ready);
        }
        match self.sampling.ahead[class].checked_sub(bytes) {
            Some(rest) if self.is_enough(class, rest, 0) => self.sampling.ahead[class] = rest,
            _ => self.count_refill_ahead::<H>(class, pops, ready),
        }
    }

    fn count_refill_ahead<H: Hooks>(&mut self, class: usize, pops: u32, ready: u32) {
        let awaited = self.awaits(class);
        self.count_down::<H>(class, pops, ready);
        let is_new = !awaited && self.awaits(class);
        let size = size_class::size_of_class(class) as u32;
        match self.sampling.ahead[class].checked_sub(size) {
            None => self.count_down::<H>(class, 1, ready),
            Some(ahead) => {
                self.sampling.ahead[class] = ahead;
                if is_new {
                    self.count_refill_awaited::<H>(class, ready);
                }
            }
        }
    }

    /// Of the requests to come that were counted just now, the refill's is the first.
    #[cold]
    fn count_refill_awaited<H: Hooks>(&mut self, class: usize, ready: u32) {
        let Some(n) = self.find_awaited(class).filter(|n| self.sampling.awaited[*n].bytes_ahead > 0) else { return };
        self.sampling.awaited[n].left -= 1;
        if self.sampling.awaited[n].left == 0 {
            self.sampling.refill = self.end_wait(n).bytes_ahead;
            self.count_ahead::<H>(class, 0, ready);
        }
    }

    /// As [`ThreadCache::count_refill`] where a turn brings objects, one of which the request pops.
    pub(crate) fn count_turn<H: Hooks>(&mut self, class: usize, pops: u32, ready: u32) {
        let size = size_class::size_of_class(class) as u32;
        if !self.counts_ahead() {
            return self.count_past::<H>(class, pops.saturating_mul(size), ready);
        }
        self.count_refill::<H>(class, pops, ready);
        self.sampling.ahead[class] += size;
    }

    /// Bytes for which the request that refilled a list stands, if it is a sample; else 0.
    #[inline]
    pub fn take_refill_sample(&mut self) -> u64 {
        core::mem::take(&mut self.sampling.refill)
    }

    /// Counts the pops of a list that is not empty.
    #[inline]
    pub(crate) fn count_pops<H: Hooks>(&mut self, class: usize) {
        match self.take_pops(class) {
            // Of a program that frees.
            0 => (),
            pops => self.count_down::<H>(class, pops, self.len(class).max(1) as u32),
        }
    }

    /// Counts requests to come, so that the one that ends the countdown is known before it comes:
    /// as many as the list may hold, or as there were in `bytes` since the last count.
    fn count_ahead<H: Hooks>(&mut self, class: usize, bytes: u32, ready: u32) {
        let (size, before) = (size_class::size_of_class(class) as u32, self.sampling.ahead[class]);
        // Else requests without a sample would be counted, and those with one not.
        let may_await = !self.awaits(class) && self.sampling.used < CLASSES_AWAITED;
        if !may_await || self.is_enough(class, before, bytes) {
            return;
        }
        let most = ready.saturating_mul(MOST_AHEAD_A_FREE_OBJECT * size);
        let ahead = self.wanted_ahead(class, bytes).min(most).max(before);
        let more = i64::from(ahead - before);
        if self.sampling.countdown.left < more {
            self.await_ahead::<H>(class);
        } else {
            self.sampling.countdown.left -= more;
            self.sampling.ahead[class] = ahead;
        }
    }

    #[inline]
    fn wanted_ahead(&self, class: usize, bytes: u32) -> u32 {
        let size = size_class::size_of_class(class) as u32;
        let requests = LEAST_REQUESTS_AHEAD.max(self.paces[class].max.max(0) as u32);
        (requests * size).max(bytes).clamp(LEAST_AHEAD, MOST_AHEAD)
    }

    /// Whether three quarters of the wanted bytes are left ahead.
    #[inline]
    fn is_enough(&self, class: usize, ahead: u32, bytes: u32) -> bool {
        let wanted = self.wanted_ahead(class, bytes);
        ahead >= wanted - wanted / 4
    }

    /// The countdown ends in a request to come.
    #[cold]
    fn await_ahead<H: Hooks>(&mut self, class: usize) {
        let size = size_class::size_of_class(class);
        // Up to the sample's, of which all bytes are counted.
        let left = (self.sampling.ahead[class] as usize + self.sampling.countdown.left as usize) / size + 1;
        let more = (left * size) as u32 - self.sampling.ahead[class];
        self.sampling.countdown.left -= i64::from(more);
        self.sampling.ahead[class] += more;
        let ended = H::count_ended(class, self.sampling.countdown, 1);
        self.sampling.countdown = ended.next;
        if ended.bytes > 0 {
            let awaited = Awaited { bytes_ahead: ended.bytes, left: left as u32, class: class as u32, ..Awaited::NONE };
            self.begin_wait(awaited);
        }
    }

    #[cold]
    fn end_countdown<H: Hooks>(&mut self, class: usize, bytes: u32, ready: u32) {
        let requests = bytes / size_class::size_of_class(class) as u32;
        let ended = H::count_ended(class, self.sampling.countdown, choice(class, requests, ready));
        self.sampling.countdown = ended.next;
        if ended.bytes == 0 {
            return;
        }
        if let Some(n) = self.find_awaited(class) {
            self.sampling.awaited[n].bytes += ended.bytes;
            return;
        }
        if self.sampling.used == CLASSES_AWAITED {
            // It may await a request that never comes.
            let n = ended.nth as usize % CLASSES_AWAITED;
            self.forgo::<H>(self.sampling.awaited[n].class as usize);
        }
        self.begin_wait(Awaited { bytes: ended.bytes, left: ended.nth, class: class as u32, ..Awaited::NONE });
    }

    /// There is room for it.
    fn begin_wait(&mut self, mut awaited: Awaited) {
        let Some(n) = self.sampling.awaited.iter().position(|a| a.class == 0) else { return };
        let class = awaited.class as usize;
        awaited.list.secret = self.lists[class].secret;
        self.sampling.awaited[n] = awaited;
        self.sampling.used += 1;
        self.lead(class, (Self::AWAITED_AT + n * size_of::<Awaited>()) as u16);
    }

    /// Whether a class awaits its sample.
    #[inline]
    pub fn awaits(&self, class: usize) -> bool {
        self.sources[class] != self.source_at(class)
    }

    #[inline]
    fn find_awaited(&self, class: usize) -> Option<usize> {
        self.awaits(class).then(|| (self.sources[class] as usize - Self::AWAITED_AT) / size_of::<Awaited>())
    }

    #[cfg(test)]
    pub fn awaited_head(&self, class: usize) -> *mut u8 {
        self.sampling.awaited[self.find_awaited(class).unwrap()].list.head
    }

    /// As if further pops had been counted.
    #[cfg(test)]
    pub fn miscount_awaited(&mut self, class: usize, pops: i32) {
        let n = self.find_awaited(class).unwrap();
        self.sampling.awaited[n].list.room += pops * POPPED;
    }

    /// Leads a class's requests to its own list again.
    #[cold]
    fn end_wait(&mut self, n: usize) -> Awaited {
        let awaited = core::mem::replace(&mut self.sampling.awaited[n], Awaited::NONE);
        let (class, rest) = (awaited.class as usize, awaited.rest());
        self.sampling.used -= 1;
        if awaited.list.head != end() {
            self.restore(class, awaited.list.head);
            // They count as popped and pushed: the pops may have been counted meanwhile.
            self.source_mut(class).room -= rest as i32 * ONE;
        }
        self.lead(class, self.source_at(class));
        awaited
    }

    /// Ends the wait for a class's sample. A later one includes what was counted before; chance
    /// decides anew about requests to come.
    #[inline]
    pub fn forgo<H: Hooks>(&mut self, class: usize) {
        let (mut requests, ahead) = (self.take_pops(class), core::mem::take(&mut self.sampling.ahead[class]));
        if let Some(n) = self.find_awaited(class) {
            let awaited = self.end_wait(n);
            // Objects of its list count as popped.
            requests = requests.saturating_sub(awaited.rest());
            H::forgone(class, awaited.bytes);
        }
        let bytes = requests.saturating_mul(size_class::size_of_class(class) as u32);
        self.sampling.countdown.left -= i64::from(bytes.saturating_sub(ahead));
    }

    /// Counts a slow request of a class, and tells its kind.
    ///
    /// # Safety
    /// `this` is the calling thread's cache.
    #[inline]
    pub unsafe fn slow<H: Hooks>(this: *mut Self, class: usize) -> Slow {
        // SAFETY: by the contract.
        match unsafe { (*this).find_awaited(class) } {
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
        let class = awaited.class as usize;
        let is_sample = awaited.left == 0;
        let of_sample = if is_sample { cache.end_wait(n) } else { Awaited::NONE };
        // SAFETY: as above.
        let object = unsafe { Self::pop_own(this, class) };
        if object.is_null() {
            // Its refill counts on, and leads on.
        } else if !is_sample {
            cache.lead_on::<H>(class);
        } else {
            cache.count_pops::<H>(class);
        }
        match of_sample.bytes + of_sample.bytes_ahead {
            0 if object.is_null() => Slow::Usual,
            0 => Slow::Served(object),
            bytes => Slow::Sample(object, bytes),
        }
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
        if self.awaits(class) {
            self.lead_on_awaited::<H>(class);
        }
    }

    /// Puts a chain into the list for requests; if the class awaits its sample, into the list that
    /// leads there, without a walk.
    pub(crate) fn fill_on<H: Hooks>(&mut self, class: usize, chain: Chain) {
        if self.awaits(class) {
            self.fill_on_awaited::<H>(class, chain);
        } else {
            self.fill(class, chain);
        }
    }

    #[cold]
    fn fill_on_awaited<H: Hooks>(&mut self, class: usize, chain: Chain) {
        let n = self.find_awaited(class).filter(|n| {
            let awaited = &self.sampling.awaited[*n];
            awaited.given == 0 && chain.len() < awaited.left && !chain.is_empty()
        });
        let Some(n) = n.filter(|_| self.is_empty(class) && !H::handlers_allocate()) else {
            self.fill(class, chain);
            return self.lead_on_awaited::<H>(class);
        };
        self.give_awaited(n, chain);
    }

    /// They count as popped.
    fn give_awaited(&mut self, n: usize, chain: Chain) {
        let (head, len) = chain.into_raw();
        let awaited = &mut self.sampling.awaited[n];
        (awaited.given, awaited.left) = (len, awaited.left - len);
        awaited.list.head = head;
        let class = awaited.class as usize;
        self.source_mut(class).room -= len as i32 * WEAR;
    }

    #[cold]
    fn lead_on_awaited<H: Hooks>(&mut self, class: usize) {
        let Some(n) = self.find_awaited(class) else { return };
        let Awaited { given, left, .. } = self.sampling.awaited[n];
        if given > 0 || H::handlers_allocate() {
            return;
        }
        let chain = self.drain::<H>(class, left.saturating_sub(1));
        if chain.is_empty() {
            return;
        }
        self.give_awaited(n, chain);
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
