//! The zone of frames. A [`Zone`] borrows [`Memory`] and arrays of the medium for one request, so
//! that the heap can own its medium.

use super::{FrameConfig, FrameExtents};
use crate::extents::{ExtentError, ExtentKind};
use craton_base::Medium;
use craton_base::atomic::{AtomicU16, AtomicU32, AtomicU64};
use craton_frames::{
    Config, Error, Geometry, Init, Kind, Local, Media, Metadata, Opened, PAGE_WORDS, PersistentZone, Request, Standard,
};
use std::ops::Range;

pub(super) struct Memory {
    trees: Box<[AtomicU16]>,
    index: Box<[AtomicU64]>,
    locals: Box<[Local]>,
}

impl Memory {
    pub fn new(config: &FrameConfig) -> Self {
        fn array<T: Default>(len: usize) -> Box<[T]> {
            (0..len).map(|_| T::default()).collect()
        }
        let sizes = config.sizes();
        Self { trees: array(sizes.trees), index: array(sizes.index), locals: array(sizes.locals) }
    }
}

#[derive(Clone, Copy)]
pub(super) struct Through<'a, M> {
    medium: &'a M,
    /// Address and offset: of the zone's page with the rows behind it, and of the entries.
    words: (usize, u64),
    halves: (usize, u64),
}

impl<M> Through<'_, M> {
    #[inline(always)]
    fn at<W>(&self, word: &W) -> u64 {
        let (first, at) = if size_of::<W>() == size_of::<AtomicU32>() { self.halves } else { self.words };
        at + (std::ptr::from_ref(word).addr() - first) as u64
    }
}

impl<M: Medium> Media for Through<'_, M> {
    #[inline(always)]
    fn changed<W>(&self, word: &W) {
        self.medium.stored(self.at(word));
    }

    #[inline(always)]
    fn flush<W>(&self, word: &W) {
        if M::FLUSHES {
            self.medium.flush(self.at(word));
        }
    }

    #[inline(always)]
    fn fence(&self) {
        if M::FLUSHES {
            self.medium.fence();
        }
    }
}

type Frames<'a, M> = PersistentZone<'a, Standard, Through<'a, M>>;

pub(super) struct Zone<'a, M> {
    zone: Frames<'a, M>,
    pub medium: &'a M,
}

type Begin<'a, M> = fn(usize, &'a [AtomicU64], Metadata<'a>, Config, Through<'a, M>) -> Result<Begun<'a, M>, Error>;
type Begun<'a, M> = (Frames<'a, M>, Opened);

impl<'a, M: Medium> Zone<'a, M> {
    fn begin(
        medium: &'a M,
        memory: &'a Memory,
        config: &FrameConfig,
        begin: Begin<'a, M>,
    ) -> Result<(Self, Opened), ExtentError> {
        let no_arrays = ExtentError::Corrupt { what: "records of frames, beyond the file's end", at: config.meta };
        let (sizes, children) = (config.sizes(), config.children());
        let words = medium.array(config.meta, PAGE_WORDS + sizes.rows).ok_or(no_arrays)?;
        let halves = medium.half_array(children, sizes.children).ok_or(no_arrays)?;
        let (page, rows) = words.split_at(PAGE_WORDS);
        let metadata =
            Metadata { rows, children: halves, trees: &memory.trees, index: &memory.index, locals: &memory.locals };
        let through =
            Through { medium, words: (words.as_ptr().addr(), config.meta), halves: (halves.as_ptr().addr(), children) };
        let zone_config = Config { claims: false, ..Config::new(config.processors) };
        let begun = begin(config.pages as usize, page, metadata, zone_config, through);
        let refused = |error| match error {
            Error::NoMemory => ExtentError::NoMemory,
            _ => ExtentError::Corrupt { what: "zone of frames", at: config.meta },
        };
        begun.map(|(zone, opened)| (Self { zone, medium }, opened)).map_err(refused)
    }

    /// All frames are allocated.
    pub fn create(medium: &'a M, memory: &'a Memory, config: &FrameConfig) -> Result<Self, ExtentError> {
        let create: Begin<'a, M> = |frames, page, metadata, config, through| {
            let zone = PersistentZone::create(frames, page, metadata, Init::Allocated, config, through)?;
            Ok((zone, Opened::Clean))
        };
        Self::begin(medium, memory, config, create).map(|(zone, _)| zone)
    }

    /// Returns whether the zone was closed.
    pub fn open(medium: &'a M, memory: &'a Memory, config: &FrameConfig) -> Result<(Self, bool), ExtentError> {
        let (zone, opened) = Self::begin(medium, memory, config, PersistentZone::open)?;
        Ok((zone, opened == Opened::Clean))
    }

    fn request(order: u32, kind: ExtentKind, processor: usize) -> Request {
        let kind = if kind == ExtentKind::Slab { Kind::Unmovable } else { Kind::Movable };
        Request { order, kind, processor }
    }

    pub fn get(&self, order: u32, kind: ExtentKind, processor: usize) -> Option<usize> {
        self.zone.get(Self::request(order, kind, processor)).ok()
    }

    /// `false`: the block was not free.
    pub fn get_at(&self, frame: usize, order: u32) -> bool {
        let last = frame + (1 << order) - 1;
        self.is_free(frame) && self.is_free(last) && self.zone.get_at(frame, order).is_ok()
    }

    pub fn put(&self, frames: Range<usize>) {
        for (frame, order) in blocks(frames) {
            let done = self.zone.put(frame, Self::request(order, ExtentKind::Object, 0));
            debug_assert_eq!(done, Ok(()), "frame {frame} of order {order}");
        }
    }

    pub fn is_free(&self, frame: usize) -> bool {
        self.zone.is_free(frame) == Ok(true)
    }

    pub fn free_frames(&self) -> u64 {
        self.zone.free_frames() as u64
    }

    /// Error: a broken invariant.
    pub fn check(&self) -> Result<(), &'static str> {
        self.zone.check().map_err(|broken| broken.invariant)
    }

    pub fn close(self) {
        self.zone.close();
    }
}

impl FrameExtents {
    pub(super) fn zone<'a, M: Medium>(&'a self, medium: &'a M) -> Result<Zone<'a, M>, ExtentError> {
        let view: Begin<'a, M> = |frames, page, metadata, config, through| {
            Ok((PersistentZone::view(frames, page, metadata, config, through)?, Opened::Clean))
        };
        Zone::begin(medium, &self.memory, &self.config, view).map(|(zone, _)| zone)
    }
}

pub(super) fn blocks(frames: Range<usize>) -> impl Iterator<Item = (usize, u32)> {
    let mut at = frames.start;
    std::iter::from_fn(move || {
        if at >= frames.end {
            return None;
        }
        let order = at.trailing_zeros().min((frames.end - at).ilog2()).min(Standard::MAX_ORDER);
        at += 1 << order;
        Some((at - (1 << order), order))
    })
}
