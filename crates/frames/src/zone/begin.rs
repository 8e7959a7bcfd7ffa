use super::Zone;
use crate::claim::Claim;
use crate::config::{Config, Init};
use crate::error::Error;
use crate::geometry::Geometry;
use crate::local::Local;
use crate::lower::Lower;
use crate::media::{Media, Volatile};
use crate::metadata::{Metadata, Sizes};
use crate::offline::Offline;
use crate::slot::Slots;
use crate::tree::{ALL, KINDS, Thresholds, Trees};

impl<'a, G: Geometry> Zone<'a, G> {
    /// `frames`: less than 2^36. Fails if an array is too short.
    pub fn new(frames: usize, metadata: Metadata<'a>, init: Init, config: Config) -> Result<Self, Error> {
        let zone = Self::over(frames, metadata, config, Volatile)?;
        zone.lower.begin(init);
        zone.begin_offline(init);
        zone.begin();
        Ok(zone)
    }
}

impl<'a, G: Geometry, M: Media> Zone<'a, G, M> {
    pub(crate) fn over(frames: usize, metadata: Metadata<'a>, config: Config, media: M) -> Result<Self, Error> {
        let zone = Self::view(frames, metadata, config, media)?;
        metadata.locals[..Sizes::of::<G>(frames, config.processors).locals].iter().for_each(Local::clear);
        zone.offline.clear();
        Ok(zone)
    }

    /// Leaves the arrays as they are.
    pub(crate) fn view(frames: usize, metadata: Metadata<'a>, config: Config, media: M) -> Result<Self, Error> {
        if frames == 0 || frames >= 1 << (Claim::HALVES + G::CLAIM_ORDER) {
            return Err(Error::Frames { frames });
        }
        if config.processors == 0 {
            return Err(Error::Processor { processor: 0, processors: 0 });
        }
        let Thresholds { allocated, free } = config.thresholds;
        if allocated > free || free > ALL {
            return Err(Error::Thresholds { allocated, free });
        }
        let sizes = Sizes::of::<G>(frames, config.processors);
        fn cut<'a, T>(array: &'static str, all: &'a [T], needed: usize) -> Result<&'a [T], Error> {
            all.get(..needed).ok_or(Error::TooSmall { array, needed, given: all.len() })
        }
        let rows = cut("rows", metadata.rows, sizes.rows)?;
        let children = cut("children", metadata.children, sizes.children)?;
        let trees = cut("trees", metadata.trees, sizes.trees)?;
        let index = cut("index", metadata.index, sizes.index)?;
        let locals = cut("locals", metadata.locals, sizes.locals)?;
        let (locals, slots) = locals.split_at(config.processors * KINDS);
        let slots = Slots::new(if config.claims { slots } else { &[] }, G::TREE >> G::CLAIM_ORDER);
        let lower = Lower::new(rows, children, frames, media, slots);
        let (index, offline) = index.split_at(Trees::words(trees.len()));
        let offline = Offline::new(offline).ok_or(Error::TooSmall { array: "index", needed: sizes.index, given: 0 })?;
        let trees = Trees::new(trees, index, config.thresholds);
        Ok(Self { lower, trees, locals, config, offline })
    }

    pub(crate) fn begin_offline(&self, init: Init) {
        if init == Init::Offline {
            self.offline.begin_with(self.frames() / G::HUGE);
        }
    }

    pub(crate) fn begin(&self) -> usize {
        self.trees.begin(&self.lower)
    }
}
