//! Sites and live samples.
//!
//! **State.** One mapping, made at the first sample; `craton profile` reads it, and a file of the
//! profile is its beginning and the text of `/proc/self/maps`:
//! ```text
//! | Header | sites, in order of their first sample | index of sites by hash | live samples by address |
//! ```
//! **The high-water mark.** Each new one begins an epoch. A site that changes first keeps its live
//! counts as those at the mark, unless its epoch is the present one. So a site's counts at the mark
//! are `peak` if its epoch is the present one, else `live`: no copy of all sites.
//!
//! **Threads.** One lock. `sequence` is odd during a change, for readers that do not stop the
//! process.
//!
//! **Unsafe.** Keeps the tables in a mapping.

use core::mem::offset_of;
use core::slice;
use core::sync::atomic::{AtomicU16, AtomicU64, AtomicUsize, Ordering, Ordering::Relaxed};
use craton_os::{Mutex, Rank, mapping, probe, process, thp};

/// "\0CRATONP", little-endian.
const MAGIC: u64 = u64::from_le_bytes(*b"\0CRATONP");
pub(crate) const VERSION: u32 = 1;
/// Frames of a stack.
pub(crate) const DEPTH: usize = 32;
const SITES: usize = 4096;
const INDEX: usize = 2 * SITES;
const SAMPLES: usize = 8192;
/// Live samples, so that the search for one is short.
const MOST: usize = SAMPLES * 3 / 4;
const NEAR: usize = 4096;
/// A sample that lives no longer is short-lived.
const SHORT_NS: u64 = 10_000_000;

/// Estimates.
#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Count {
    pub(crate) bytes: u64,
    pub(crate) objects: u64,
}

impl Count {
    pub(crate) fn add(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.objects += other.objects;
    }

    fn sub(&mut self, other: Self) {
        self.bytes = self.bytes.saturating_sub(other.bytes);
        self.objects = self.objects.saturating_sub(other.objects);
    }
}

#[repr(C)]
#[derive(Debug)]
pub(crate) struct Header {
    magic: u64,
    version: u32,
    /// Of this header, of a site, and frames of a stack.
    header_bytes: u32,
    site_bytes: u32,
    depth: u32,
    sites: u64,
    /// Odd during a change.
    sequence: AtomicU64,
    /// Behind the sites, in a file; else 0.
    maps_bytes: u64,
    pid: u64,
    /// Present bytes between samples.
    interval: u64,
    samples: u64,
    live_samples: u64,
    /// Without room in the tables.
    dropped: u64,
    /// By the monotonic clock.
    began_ns: u64,
    last_ns: u64,
    peak_ns: u64,
    short_ns: u64,
    epoch: u64,
    live: Count,
    peak: Count,
    total: Count,
    short: Count,
    /// In a file: the live objects that `debug=audit` knows, whose sites follow; also in `live`.
    exact: Count,
}

#[repr(C)]
#[derive(Debug)]
struct Site {
    hash: u64,
    epoch: u64,
    frames_used: u64,
    live: Count,
    peak: Count,
    total: Count,
    short: Count,
    /// Sum of the lives of freed objects, in microseconds, and their number.
    lived_us: u64,
    freed: u64,
    frames: [usize; DEPTH],
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// In the tables [`hidden`]; 0: free place.
    pub(crate) address: usize,
    pub(crate) size: usize,
    /// That it stands for.
    pub(crate) bytes: u64,
    pub(crate) objects: u64,
    pub(crate) at_ns: u64,
    pub(crate) site: usize,
}

pub(crate) const SITE_BYTES: usize = size_of::<Site>();

/// A file's site of live objects alone.
pub(crate) fn live_site(frames: &[usize], live: Count) -> [u8; SITE_BYTES] {
    let mut bytes = [0; SITE_BYTES];
    let frames = &frames[..frames.len().min(DEPTH)];
    let mut put = |at: usize, word: u64| bytes[at..at + 8].copy_from_slice(&word.to_ne_bytes());
    put(offset_of!(Site, frames_used), frames.len() as u64);
    for at in [offset_of!(Site, live), offset_of!(Site, peak), offset_of!(Site, total)] {
        put(at, live.bytes);
        put(at + 8, live.objects);
    }
    frames.iter().enumerate().for_each(|(i, pc)| put(offset_of!(Site, frames) + 8 * i, *pc as u64));
    bytes
}

/// A sample that was freed.
struct Ended {
    size: usize,
    bytes: u64,
    lived_ns: u64,
}

#[repr(C)]
pub(crate) struct All {
    pub(crate) header: Header,
    sites: [Site; SITES],
    /// Numbers plus 1.
    index: [u32; INDEX],
    samples: [Sample; SAMPLES],
}

pub(crate) struct Tables {
    /// Of [`All`]; 0 before the first sample.
    at: AtomicUsize,
    lock: Mutex<()>,
    /// Live samples by a hash of their addresses: most frees of other objects see a 0.
    near: [AtomicU16; NEAR],
}

impl Tables {
    pub(crate) const AT: usize = offset_of!(Self, at);

    pub(crate) const fn new() -> Self {
        Self {
            at: AtomicUsize::new(0),
            lock: Mutex::ranked(Rank::Profile, ()),
            near: [const { AtomicU16::new(0) }; NEAR],
        }
    }

    pub(crate) fn lock_for_fork(&self, nested: bool) {
        self.lock.lock_for_fork(nested);
    }

    /// # Safety
    /// As [`Mutex::release_after_fork`].
    pub(crate) unsafe fn release_after_fork(&self) {
        // SAFETY: by the contract.
        unsafe { self.lock.release_after_fork() };
    }

    /// With the tables, made if `makes`, under their lock.
    pub(crate) fn with<R>(&self, makes: bool, act: impl FnOnce(&mut All) -> R) -> Option<R> {
        // ORDERING: pairs with the Release in `make`.
        if !makes && self.at.load(Ordering::Acquire) == 0 {
            return None;
        }
        let _alone = self.lock.lock();
        let at = match self.at.load(Ordering::Relaxed) {
            0 => self.make()?,
            at => at,
        };
        // SAFETY: a mapping of this size that stays, of which zeros are valid; the lock is held.
        Some(act(unsafe { &mut *(at as *mut All) }))
    }

    #[cold]
    fn make(&self) -> Option<usize> {
        let at = mapping::map(size_of::<All>().next_multiple_of(process::page_size()), 1)?;
        mapping::advise_small(at, size_of::<All>());
        // SAFETY: new memory of this size, all zeros, which are valid.
        let header = unsafe { &mut (*(at as *mut All)).header };
        (header.magic, header.version) = (MAGIC, VERSION);
        header.header_bytes = size_of::<Header>() as u32;
        header.site_bytes = size_of::<Site>() as u32;
        header.depth = DEPTH as u32;
        header.short_ns = SHORT_NS;
        // ORDERING: pairs with the Acquire in `with`.
        self.at.store(at, Ordering::Release);
        Some(at)
    }

    /// Returns how many live samples there are now; 0: this one was dropped.
    pub(crate) fn add(&self, sample: Sample, frames: &[usize], interval: u64) -> usize {
        // A huge object's address may come back before its free was counted.
        self.remove(sample.address, None);
        let near = self.near(sample.address);
        let sample = Sample { address: hidden(sample.address), ..sample };
        let live = self.with(true, |all| all.change(|all| all.add(sample, frames, interval))).unwrap_or(0);
        // Relaxed: the object's next owner gets it through a synchronising hand-over.
        near.fetch_add(u16::from(live > 0), Relaxed);
        live
    }

    /// Returns whether it was a sample. `now`: unless the object lives on elsewhere.
    pub(crate) fn remove(&self, address: usize, now: Option<fn() -> u64>) -> bool {
        let found = self.may_have(address).then(|| {
            self.with(false, |all| {
                let place = all.find(hidden(address))?;
                Some(all.change(|all| all.remove(place, now)))
            })
        });
        let Some(Ended { size, bytes, lived_ns }) = found.flatten().flatten() else { return false };
        self.near(address).fetch_sub(1, Relaxed);
        probe::sample_free(address, size, bytes as usize, lived_ns as usize);
        true
    }

    pub(crate) fn live_bytes(&self) -> u64 {
        self.with(false, |all| all.header.live.bytes).unwrap_or(0)
    }

    fn near(&self, address: usize) -> &AtomicU16 {
        &self.near[(address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) as usize >> (u64::BITS - NEAR.ilog2())]
    }

    /// Whether an address may be a live sample's; right for those that are. Takes no lock.
    #[inline(always)]
    pub(crate) fn may_have(&self, address: usize) -> bool {
        self.near(address).load(Relaxed) != 0
    }
}

/// A search for leaks reads the tables: an object's address would keep it.
fn hidden(address: usize) -> usize {
    !address
}

impl All {
    /// The header of a file: with `sites` more of `exact` objects, and the text of the mappings.
    pub(crate) fn header_of_file(&self, sites: u64, exact: Count, maps_bytes: u64) -> [u8; size_of::<Header>()] {
        let mut bytes = [0; size_of::<Header>()];
        // SAFETY: plain words without padding; the header's counter changes under the lock only.
        bytes.copy_from_slice(unsafe { slice::from_raw_parts((&raw const self.header).cast(), size_of::<Header>()) });
        let mut live = self.header.live;
        live.add(exact);
        let mut put = |at: usize, word: u64| bytes[at..at + 8].copy_from_slice(&word.to_ne_bytes());
        put(offset_of!(Header, sites), self.header.sites + sites);
        put(offset_of!(Header, sequence), 0);
        put(offset_of!(Header, maps_bytes), maps_bytes);
        put(offset_of!(Header, pid), process::id().into());
        for (at, count) in [(offset_of!(Header, live), live), (offset_of!(Header, exact), exact)] {
            put(at, count.bytes);
            put(at + 8, count.objects);
        }
        bytes
    }

    /// As in a file.
    pub(crate) fn sites(&self) -> &[u8] {
        let used = &self.sites[..self.header.sites as usize];
        // SAFETY: plain words without padding.
        unsafe { slice::from_raw_parts(used.as_ptr().cast(), size_of_val(used)) }
    }

    fn change<R>(&mut self, act: impl FnOnce(&mut Self) -> R) -> R {
        let before = self.header.sequence.load(Ordering::Relaxed);
        self.header.sequence.store(before + 1, Ordering::Relaxed);
        // ORDERING: a reader that sees a word of the change sees the odd number. No thread of the
        // process pairs with it: `craton profile` reads the number before and after.
        core::sync::atomic::fence(Ordering::Release);
        let result = act(self);
        // ORDERING: as above.
        self.header.sequence.store(before + 2, Ordering::Release);
        result
    }

    fn add(&mut self, mut sample: Sample, frames: &[usize], interval: u64) -> usize {
        let site = if self.header.live_samples as usize >= MOST { None } else { self.site(frames) };
        let header = &mut self.header;
        let Some(site) = site else {
            header.dropped += 1;
            return 0;
        };
        (header.interval, header.last_ns) = (interval, sample.at_ns);
        if thp::may_query() {
            header.pid = process::id().into();
        }
        if header.began_ns == 0 {
            header.began_ns = sample.at_ns;
        }
        sample.site = site;
        let count = Count { bytes: sample.bytes, objects: sample.objects };
        self.keep_peak(site);
        let (header, counted) = (&mut self.header, &mut self.sites[site]);
        for sum in [&mut header.live, &mut header.total, &mut counted.live, &mut counted.total] {
            sum.add(count);
        }
        (header.samples, header.live_samples) = (header.samples + 1, header.live_samples + 1);
        // A sample for several intervals stands for objects that a cache handed out again and
        // again, most of them freed by now. If it lives on, the next sample makes the mark.
        let stands_for_freed = sample.bytes > 2 * interval.max(sample.size as u64);
        if header.live.bytes > header.peak.bytes && !stands_for_freed {
            (header.peak, header.peak_ns) = (header.live, sample.at_ns);
            header.epoch += 1;
        }
        let live = header.live_samples as usize;
        let place = self.place_of(sample.address);
        self.samples[place] = sample;
        live
    }

    fn remove(&mut self, place: usize, now: Option<fn() -> u64>) -> Ended {
        let Sample { size, bytes, objects, at_ns, site, .. } = self.samples[place];
        let count = Count { bytes, objects };
        self.keep_peak(site);
        let (header, site) = (&mut self.header, &mut self.sites[site]);
        header.live.sub(count);
        site.live.sub(count);
        header.live_samples -= 1;
        let lived_ns = now.map_or(0, |now| now().saturating_sub(at_ns));
        if now.is_some() {
            site.freed += objects;
            site.lived_us = site.lived_us.saturating_add((lived_ns / 1000).saturating_mul(objects));
            if lived_ns < SHORT_NS {
                header.short.add(count);
                site.short.add(count);
            }
        }
        self.close_gap(place);
        Ended { size, bytes, lived_ns }
    }

    /// Before the site changes.
    fn keep_peak(&mut self, site: usize) {
        let site = &mut self.sites[site];
        if site.epoch != self.header.epoch {
            (site.peak, site.epoch) = (site.live, self.header.epoch);
        }
    }

    /// The number of a stack's site, new if need be; `None` without room.
    fn site(&mut self, frames: &[usize]) -> Option<usize> {
        let start = frames.len() as u64 + 1;
        let hash =
            frames.iter().fold(start, |h, pc| (h ^ *pc as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29));
        let mut at = hash as usize % INDEX;
        loop {
            match self.index[at] {
                0 => break,
                number => {
                    let site = &self.sites[number as usize - 1];
                    if site.hash == hash && site.frames[..site.frames_used as usize] == *frames {
                        return Some(number as usize - 1);
                    }
                }
            }
            at = (at + 1) % INDEX;
        }
        let number = self.header.sites as usize;
        let site = self.sites.get_mut(number)?;
        (site.hash, site.frames_used, site.epoch) = (hash, frames.len() as u64, self.header.epoch);
        site.frames[..frames.len()].copy_from_slice(frames);
        self.index[at] = number as u32 + 1;
        self.header.sites += 1;
        Some(number)
    }

    fn home(address: usize) -> usize {
        ((address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize % SAMPLES
    }

    /// Of a live sample, or the free place where it would be.
    fn place_of(&self, address: usize) -> usize {
        let mut at = Self::home(address);
        while self.samples[at].address != 0 && self.samples[at].address != address {
            at = (at + 1) % SAMPLES;
        }
        at
    }

    fn find(&self, address: usize) -> Option<usize> {
        let place = self.place_of(address);
        (self.samples[place].address != 0).then_some(place)
    }

    /// Moves samples that the search for them would no longer reach over a free place.
    fn close_gap(&mut self, mut gap: usize) {
        let from = |start: usize, to: usize| (to + SAMPLES - start) % SAMPLES;
        let mut at = gap;
        loop {
            at = (at + 1) % SAMPLES;
            let address = self.samples[at].address;
            if address == 0 {
                break;
            }
            if from(Self::home(address), at) >= from(gap, at) {
                self.samples[gap] = self.samples[at];
                gap = at;
            }
        }
        self.samples[gap].address = 0;
    }
}

/// For readers of another process.
pub(crate) const SHAPE: [(&str, usize); 5] = [
    ("profile.version", VERSION as usize),
    ("profile.bytes", offset_of!(All, index)),
    ("profile.samples", offset_of!(All, samples)),
    ("profile.places", SAMPLES),
    ("profile.sample_bytes", size_of::<Sample>()),
];

#[cfg(all(test, not(loom)))]
mod tests;
