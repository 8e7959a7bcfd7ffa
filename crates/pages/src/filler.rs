//! Packs spans of less than a hugepage onto as few hugepages as possible.
//!
//! **From.** TEMERAIRE §4.4: among the hugepages that can hold a span, take one with the smallest longest free range, and
//! among those the one with most spans; inside it the best fit. Hugepages whose tail was donated come after (§4.1),
//! those that lost part of their memory last (§4.6).
//!
//! **Invariants.** P3: a hugepage of the filler is on the list that its numbers name.

use crate::lists::{LISTS, Lists, rank};
use crate::tracker::{Place, Tracker};
use craton_base::{HugePageId, PAGES_PER_HUGEPAGE, Pages, Table};

/// Hugepages looked at for an aligned place before one with room to spare is asked for.
const LOOKS: usize = 4;
/// The families, in the order in which they are used.
pub(crate) const FAMILIES: usize = 3;
const WHOLE: usize = 0;
const DONATED: usize = 1;
const BROKEN: usize = 2;

pub(crate) struct Filler {
    families: [Lists; FAMILIES],
    used: Pages,
}

/// The family of a hugepage.
fn family(t: &Tracker) -> usize {
    match (t.broken, t.donated) {
        (true, _) => BROKEN,
        (false, true) => DONATED,
        (false, false) => WHOLE,
    }
}

impl Filler {
    pub(crate) const EMPTY: Self = Self { families: [const { Lists::EMPTY }; FAMILIES], used: Pages(0) };

    /// Pages in spans on the filler's hugepages.
    pub(crate) fn used(&self) -> Pages {
        self.used
    }

    /// Hugepages in the filler.
    pub(crate) fn len(&self) -> u32 {
        self.families.iter().map(Lists::len).sum()
    }

    /// A hugepage with room for `pages` at a multiple of `align`, and where in it.
    pub(crate) fn find(&self, trackers: &Table<Tracker>, pages: u32, align: u32) -> Option<(HugePageId, u32)> {
        self.families.iter().find_map(|lists| {
            self.find_in(lists, trackers, pages, align, LOOKS)
                // Any hugepage with this much room holds an aligned place.
                .or_else(|| {
                    self.find_in(lists, trackers, pages + align - 1, 1, 1)
                        .and_then(|(id, _)| trackers[id.0 as usize].best_fit(pages, align).map(|at| (id, at)))
                })
        })
    }

    fn find_in(
        &self,
        lists: &Lists,
        trackers: &Table<Tracker>,
        pages: u32,
        align: u32,
        looks: usize,
    ) -> Option<(HugePageId, u32)> {
        if pages > PAGES_PER_HUGEPAGE {
            return None;
        }
        let mut from = rank(pages, u32::MAX);
        for _ in 0..looks {
            let at = lists.first_at(from)?;
            let id = lists.head(at)?;
            if let Some(place) = trackers[id.0 as usize].best_fit(pages, align) {
                return Some((id, place));
            }
            from = at + 1;
        }
        None
    }

    /// Takes a hugepage in: one just taken from the free ones, or the tail of a large span.
    pub(crate) fn adopt(&mut self, trackers: &mut Table<Tracker>, id: HugePageId, donated: bool) {
        let t = &mut trackers[id.0 as usize];
        t.place = Place::Filler;
        t.donated = donated;
        self.used.0 += t.used_pages();
        self.enlist(trackers, id);
    }

    /// Gives a hugepage up.
    pub(crate) fn expel(&mut self, trackers: &mut Table<Tracker>, id: HugePageId) {
        self.delist(trackers, id);
        self.used.0 -= trackers[id.0 as usize].used_pages();
    }

    /// Changes a hugepage of the filler, moving it to the list that it then belongs to.
    pub(crate) fn update<R>(
        &mut self,
        trackers: &mut Table<Tracker>,
        id: HugePageId,
        change: impl FnOnce(&mut Tracker) -> R,
    ) -> R {
        self.delist(trackers, id);
        let t = &mut trackers[id.0 as usize];
        self.used.0 -= t.used_pages();
        let result = change(t);
        self.used.0 += t.used_pages();
        self.enlist(trackers, id);
        result
    }

    fn enlist(&mut self, trackers: &mut Table<Tracker>, id: HugePageId) {
        let t = &mut trackers[id.0 as usize];
        let at = rank(t.longest_free(), t.allocs());
        let family = family(t);
        t.list = (family * LISTS + at) as u16 + 1;
        self.families[family].push(trackers, at, id);
    }

    fn delist(&mut self, trackers: &mut Table<Tracker>, id: HugePageId) {
        let t = &mut trackers[id.0 as usize];
        let list = t.list as usize - 1;
        t.list = 0;
        self.families[list / LISTS].remove(trackers, list % LISTS, id);
    }

    /// The list, as its number plus 1, that a hugepage should be on (P3).
    pub(crate) fn list_of(t: &Tracker) -> u16 {
        (family(t) * LISTS + rank(t.longest_free(), t.allocs())) as u16 + 1
    }

    /// The hugepage with the most free pages in family `f`, for release.
    pub(crate) fn emptiest(&self, f: usize, below: usize) -> Option<(HugePageId, usize)> {
        // Lists are ordered by longest free range, so the last non-empty one is approximately the emptiest.
        (0..below).rev().find_map(|at| self.families[f].head(at).map(|id| (id, at)))
    }

    /// Walks list `at` of family `f`.
    pub(crate) fn walk<'a>(
        &'a self,
        trackers: &'a Table<Tracker>,
        f: usize,
        at: usize,
    ) -> impl Iterator<Item = HugePageId> + 'a {
        let mut next = self.families[f].head(at);
        core::iter::from_fn(move || {
            let id = next?;
            next = trackers[id.0 as usize].next.checked_sub(1).map(HugePageId);
            Some(id)
        })
    }
}
