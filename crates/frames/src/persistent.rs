//! A zone that outlasts crashes.
//!
//! **What.** A [`Zone`] of which the lower level and a [page](crate::page) are in memory that persists. [`create`]
//! makes one, [`open`] finds it again, [`close`] leaves it so that the next `open` is quick.
//!
//! **From.** LLFree §3.2.3 and figure 4. Trees, sets and processors' words are volatile, and made anew. What a crash
//! leaves, and why it can be made right at orders 7 and 8 and in the middle of a split too, is said in
//! `lower/recover.rs`.
//!
//! **Invariants.** *P1*, *P2* of the page. *P3* After a crash the frames of every request that had returned are as it
//! left them, and of every request under way as before or after it, or, where it frees what was allocated in pieces, in
//! between. So frames are lost only to who never heard of them: those of requests under way, a request for each
//! processor.
//!
//! **Threads.** The zone is in nobody else's hands in `create`, `open` and `close`: the last one takes it for good.
//! What two processes do that open the same page at once is not defined.
//!
//! **Failure.** What is found where no zone, or another one, lies is an error; nothing is written then.
//!
//! **Cost.** For 128 GiB: `open` of a closed zone reads 128 KiB of entries; after a crash 4 MiB of rows as well.
//! Processors do not claim frames here, whatever [`Config::claims`] says: claimed frames would be lost.
//!
//! **Not here.** Which huge frames are [offline](Zone::offline) is volatile: after `open` they are allocated, and
//! whoever took them away frees them, or keeps them.
//!
//! [`create`]: PersistentZone::create
//! [`open`]: PersistentZone::open
//! [`close`]: PersistentZone::close

use crate::config::{Config, Init};
use crate::error::Error;
use crate::geometry::{Geometry, Standard};
use crate::media::{Cached, Media};
use crate::metadata::Metadata;
use crate::page::{Left, Page};
use crate::zone::Zone;
use core::ops::Deref;
use craton_base::atomic::AtomicU64;

/// Bytes of a cache line.
const LINE: usize = 64;

/// Frames and who has them, also after a crash. What it can do besides is in [`Zone`].
pub struct PersistentZone<'a, G = Standard, M = Cached> {
    zone: Zone<'a, G, M>,
    page: Page<'a, G>,
}

/// How a zone was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Opened {
    /// As it was closed.
    Clean,
    /// As a crash left it. Frames of requests that were under way may be allocated though nobody has them.
    Recovered {
        /// Huge frames whose entry was wrong, as counters are after most crashes.
        corrected: usize,
    },
}

/// An error if what persists does not begin with a cache line: a line is what becomes durable at once.
fn check_lines(page: &[AtomicU64], metadata: &Metadata<'_>) -> Result<(), Error> {
    // In a model words are longer than words.
    let check = |array, address: usize| match address % LINE {
        _ if cfg!(loom) => Ok(()),
        0 => Ok(()),
        at => Err(Error::Unaligned { array, at }),
    };
    check("page", page.as_ptr() as usize)?;
    check("rows", metadata.rows.as_ptr() as usize)?;
    check("children", metadata.children.as_ptr() as usize)
}

impl<'a, G: Geometry, M: Media> PersistentZone<'a, G, M> {
    /// Makes a new zone of so many frames, whatever was there before. Of the metadata `rows` and `children` are in
    /// memory that persists, as is `page`, of [`PAGE_WORDS`](crate::PAGE_WORDS) words; each begins with a cache line, of
    /// 64 bytes.
    pub fn create(
        frames: usize,
        page: &'a [AtomicU64],
        metadata: Metadata<'a>,
        init: Init,
        config: Config,
        media: M,
    ) -> Result<Self, Error> {
        check_lines(page, &metadata)?;
        let new = Self { page: Page::new(page)?, zone: Self::over(frames, metadata, config, media)? };
        let media = new.zone.lower.media();
        // A crash in the middle must not find the zone that was here with the other one's rows.
        new.page.clear(media);
        new.zone.lower.begin(init);
        new.zone.begin_offline(init);
        new.zone.lower.persist_all();
        new.page.create(frames, media);
        new.zone.begin();
        Ok(new)
    }

    /// Finds the zone of a page again, and says how. Fails if there is none, or one of other frames or another
    /// geometry.
    pub fn open(
        frames: usize,
        page: &'a [AtomicU64],
        metadata: Metadata<'a>,
        config: Config,
        media: M,
    ) -> Result<(Self, Opened), Error> {
        check_lines(page, &metadata)?;
        let page = Page::new(page)?;
        let (there, left) = page.read()?;
        if there != frames {
            return Err(Error::OtherFrames { found: there, expected: frames });
        }
        let found = Self { page, zone: Self::over(frames, metadata, config, media)? };
        let opened = match left {
            Left::Closed { free } => {
                let counted = found.zone.begin() as u64;
                if counted != free {
                    return Err(Error::Damaged { what: "number of free frames in closed children", found: counted });
                }
                found.page.open(found.zone.lower.media());
                Opened::Clean
            }
            Left::InUse => {
                let corrected = found.zone.lower.recover();
                found.zone.begin();
                Opened::Recovered { corrected }
            }
        };
        Ok((found, opened))
    }

    /// Frames of the zone that a page belongs to.
    pub fn frames_in(page: &[AtomicU64]) -> Result<usize, Error> {
        Page::<G>::new(page)?.read().map(|(frames, _)| frames)
    }

    /// Leaves the zone so that the next [`open`](Self::open) need not look at the rows. Without it that finds what a
    /// crash leaves.
    pub fn close(self) {
        let lower = &self.zone.lower;
        lower.persist_children();
        self.page.close(self.zone.free_frames(), lower.media());
    }

    fn over(frames: usize, metadata: Metadata<'a>, config: Config, media: M) -> Result<Zone<'a, G, M>, Error> {
        Zone::over(frames, metadata, Config { claims: false, ..config }, media)
    }
}

impl<'a, G: Geometry, M: Media> Deref for PersistentZone<'a, G, M> {
    type Target = Zone<'a, G, M>;

    fn deref(&self) -> &Self::Target {
        &self.zone
    }
}
