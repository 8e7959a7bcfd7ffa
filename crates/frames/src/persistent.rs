//! A zone that survives crashes (LLFree §3.2.3 and figure 4).
//!
//! A [`Zone`]'s lower level and a [page](crate::page) lie in persistent memory; all else is
//! rebuilt.
//! **Invariants.** *F11* After a crash, the frames of every returned request are as it left them;
//! those of a request under way as before or after it, or in between if it frees several pieces.
//! **Cost.** For 128 GiB [`open`] reads 128 KiB of entries; after a crash 4 MiB of rows too. CPUs
//! do not claim, whatever [`Config::claims`] says: a crash would lose claimed frames.
//! [Offline](Zone::offline) marks are volatile: after `open` such huge frames are allocated.
//!
//! [`open`]: PersistentZone::open

use crate::config::{Config, Init};
use crate::error::Error;
use crate::geometry::{Geometry, Standard};
use crate::media::{Cached, Media};
use crate::metadata::Metadata;
use crate::page::{Left, Page};
use crate::zone::Zone;
use core::ops::Deref;
use craton_base::atomic::AtomicU64;

const LINE: usize = 64;

pub struct PersistentZone<'a, G = Standard, M = Cached> {
    zone: Zone<'a, G, M>,
    page: Page<'a, G>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Opened {
    /// The zone was closed.
    Clean,
    /// The zone was open at a crash; the entries of `corrected` huge frames were wrong, as after
    /// most crashes.
    Recovered { corrected: usize },
}

/// Lines become durable as wholes.
fn check_lines(page: &[AtomicU64], metadata: &Metadata<'_>) -> Result<(), Error> {
    // Loom's words are longer.
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
    /// Overwrites. `rows`, `children` and `page` ([`PAGE_WORDS`](crate::PAGE_WORDS) words) lie in
    /// persistent memory at multiples of 64 bytes. No other CPU may use the page, also in `open`
    /// and `close`.
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
        // A crash must not find the old zone with the new one's rows.
        new.page.clear(media);
        new.zone.lower.begin(init);
        new.zone.begin_offline(init);
        new.zone.lower.persist_all();
        new.page.create(frames, media);
        new.zone.begin();
        Ok(new)
    }

    /// Error: no zone, or another one; nothing is written.
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

    /// Returns a view of a begun zone, for a holder that borrows the arrays for each request.
    /// Proofs are the view's own: a request to a full zone searches all trees.
    pub fn view(
        frames: usize,
        page: &'a [AtomicU64],
        metadata: Metadata<'a>,
        config: Config,
        media: M,
    ) -> Result<Self, Error> {
        let config = Config { claims: false, ..config };
        Ok(Self { page: Page::new(page)?, zone: Zone::view(frames, metadata, config, media)? })
    }

    pub fn frames_in(page: &[AtomicU64]) -> Result<usize, Error> {
        Page::<G>::new(page)?.read().map(|(frames, _)| frames)
    }

    /// The next [`open`](Self::open) need not read the rows.
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
