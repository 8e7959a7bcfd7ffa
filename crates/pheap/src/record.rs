//! Which ranges of the data area are in use: by the bookkeeping log, or by frames.

use crate::book_log::{ChunkView, LogConfig};
use crate::config::{Model, Options};
use crate::extents::{Extent, ExtentConfig, ExtentError, ExtentKind, ExtentStats, Extents, Plan, Range};
use crate::frame_extents::{FrameConfig, FrameExtents};
use crate::layout::{BOOK, UNIT};
use crate::state::{Super, clear};
use craton_base::{Medium, Space};

pub(crate) enum Record {
    Log(Box<Extents>),
    Frames(Box<FrameExtents>),
}

fn extent_config(sup: &Super) -> ExtentConfig {
    let log = LogConfig { stripes: sup.stripes.clamp(1, 16), ..LogConfig::new(BOOK, sup.seed()) };
    ExtentConfig { data: sup.places().data(), log }
}

fn frame_config(sup: &Super, options: &Options) -> FrameConfig {
    let places = sup.places();
    FrameConfig {
        meta: places.records(),
        data: places.data(),
        pages: places.frames(),
        processors: options.arenas(),
        salt: sup.seed(),
    }
}

/// The first length, and zeros for the records of frames.
pub(crate) fn begin<M: Medium + Space>(medium: &M, sup: &Super) -> Result<(), ExtentError> {
    let places = sup.places();
    let (records, first) = (places.records(), places.data() + UNIT);
    if sup.model == Model::Frames && medium.len() > records && medium.resize(records).is_err() {
        clear(medium, records, places.data());
    }
    if medium.len() < first {
        medium.resize(first).map_err(|_| ExtentError::NoMemory)?;
    }
    // Most of the table is never used: it gets its place on the disk with the data. If refused, it
    // has its place, and is zero all the same.
    if sup.model == Model::Frames {
        let _ = medium.discard(records, places.data() - records);
    }
    Ok(())
}

impl Record {
    pub fn create<M: Medium + Space>(medium: &M, sup: &Super, options: &Options) -> Result<Self, ExtentError> {
        Ok(match sup.model {
            Model::Frames => Self::Frames(Box::new(FrameExtents::create(medium, frame_config(sup, options))?)),
            _ => Self::Log(Box::new(Extents::create(medium, extent_config(sup)))),
        })
    }

    /// Call after redo. Also returns the freed pages of operations under way.
    pub fn open<M: Medium + Space>(
        medium: &M,
        sup: &Super,
        options: &Options,
        is_crash: bool,
    ) -> Result<(Self, u64), ExtentError> {
        if sup.model == Model::Frames {
            let (frames, freed) = FrameExtents::open(medium, frame_config(sup, options), is_crash)?;
            return Ok((Self::Frames(Box::new(frames)), freed));
        }
        Ok((Self::Log(Box::new(Extents::rebuild(medium, extent_config(sup))?)), 0))
    }

    pub fn plan_alloc<M: Medium + Space>(&self, medium: &M, pages: u32, kind: ExtentKind) -> Result<Plan, ExtentError> {
        match self {
            Self::Log(extents) => extents.plan_alloc(medium, pages, kind),
            Self::Frames(frames) => frames.plan_alloc(medium, pages, kind),
        }
    }

    pub fn plan_free<M: Medium + Space>(&self, medium: &M, page: u64) -> Result<Plan, ExtentError> {
        match self {
            Self::Log(extents) => extents.plan_free(medium, page),
            Self::Frames(frames) => frames.plan_free(medium, page),
        }
    }

    pub fn finish_free<M: Medium>(&self, medium: &M, plan: &Plan, epoch: u64) {
        match self {
            Self::Log(extents) => extents.finish_free(plan, epoch),
            Self::Frames(frames) => frames.finish_free(medium, plan, epoch),
        }
    }

    pub fn cancel<M: Medium>(&self, medium: &M, plan: &Plan) {
        match self {
            Self::Log(extents) => extents.cancel(plan),
            Self::Frames(frames) => frames.cancel(medium, plan),
        }
    }

    /// Frames end at the bound anyway.
    pub fn limit_to(&self, most: u64) {
        if let Self::Log(extents) = self {
            extents.limit_to(most);
        }
    }

    pub fn keep_length(&self) {
        match self {
            Self::Log(extents) => extents.keep_length(),
            Self::Frames(frames) => frames.keep_length(),
        }
    }

    pub fn cut_kept<M: Medium + Space>(&self, medium: &M, now_ms: u64) {
        match self {
            Self::Log(extents) => extents.cut_kept(medium, now_ms),
            Self::Frames(frames) => frames.cut_kept(medium, now_ms),
        }
    }

    /// Frames have no log that could outlive an epoch.
    pub fn begin_epoch(&self, epoch: u64) {
        if let Self::Log(extents) = self {
            extents.begin_epoch(epoch);
        }
    }

    pub fn settled(&self, epoch: u64) {
        if let Self::Log(extents) = self {
            extents.settled(epoch);
        }
    }

    pub fn tick<M: Medium + Space>(&self, medium: &M, now_ms: u64, settled: u64) {
        match self {
            Self::Log(extents) => extents.tick(medium, now_ms, settled),
            Self::Frames(frames) => frames.tick(medium, now_ms, settled),
        }
    }

    pub fn extent_at<M: Medium>(&self, medium: &M, page: u64) -> Option<Extent> {
        match self {
            Self::Log(extents) => extents.extent_at(page),
            Self::Frames(frames) => frames.extent_at(medium, page),
        }
    }

    pub fn list<M: Medium>(&self, medium: &M) -> Vec<Extent> {
        match self {
            Self::Log(extents) => extents.list(),
            Self::Frames(frames) => frames.list(medium),
        }
    }

    pub fn ranges<M: Medium>(&self, medium: &M) -> Vec<Range> {
        match self {
            Self::Log(extents) => extents.ranges(),
            Self::Frames(frames) => frames.ranges(medium),
        }
    }

    pub fn chunks(&self) -> Vec<ChunkView> {
        match self {
            Self::Log(extents) => extents.chunks(),
            Self::Frames(_) => Vec::new(),
        }
    }

    pub fn stats<M: Medium>(&self, medium: &M) -> ExtentStats {
        match self {
            Self::Log(extents) => extents.stats(),
            Self::Frames(frames) => frames.stats(medium),
        }
    }

    pub fn check<M: Medium>(&self, medium: &M) -> Result<(), ExtentError> {
        match self {
            Self::Log(extents) => extents.check(),
            Self::Frames(frames) => frames.check(medium),
        }
    }

    pub fn close<M: Medium>(&self, medium: &M) {
        if let Self::Frames(frames) = self {
            frames.close(medium);
        }
    }
}
