//! Giving memory back to the system when asked.
//!
//! **From.** TEMERAIRE §4.6: the cache first; breaking hugepages up is the last resort, since it cannot be undone cheaply.

use crate::filler::FAMILIES;
use crate::heap::PageHeap;
use crate::lists::LISTS;
use craton_base::{Clock, Floor, HugePageId, PageId, PageRange, Pages};

impl<F: Floor, C: Clock> PageHeap<F, C> {
    /// Gives memory back to the system: whole free hugepages first, then, if that is not enough and `break_hugepages`
    /// allows, the free pages of partly used ones, the emptiest first (§4.6). Returns how many pages lost theirs.
    pub fn release(&mut self, pages: Pages, break_hugepages: bool) -> u64 {
        let mut done = self.shrink_cache(pages.hugepages_up().min(self.cached.total()));
        if !break_hugepages {
            return done;
        }
        for family in (0..FAMILIES).rev() {
            let mut below = LISTS;
            while done < u64::from(pages.0)
                && let Some((_, at)) = self.filler.emptiest(family, below)
            {
                below = at;
                // Releasing moves the hugepage to another family, so the list's head is asked for each time; those that
                // have nothing to give stay, and are walked past.
                let mut skip = 0;
                while done < u64::from(pages.0) {
                    let Some(id) = self.filler.walk(&self.trackers, family, at).nth(skip) else { break };
                    match self.release_free_pages(id) {
                        0 => skip += 1,
                        n => done += n,
                    }
                }
            }
        }
        done
    }

    /// Unbacks the free pages of a hugepage in the filler.
    pub(crate) fn release_free_pages(&mut self, id: HugePageId) -> u64 {
        let t = &self.trackers[id.0 as usize];
        let gone = t.touched.minus(t.used());
        let mut pages = 0;
        let keep = gone.complement();
        for (at, len) in keep.clear_runs() {
            let range = PageRange::new(PageId(id.first_page().0 + at), Pages(len));
            if self.floor.unback(range).is_err() {
                continue;
            }
            pages += u64::from(len);
            self.filler.update(&mut self.trackers, id, |t| {
                t.touched.remove(at, len);
                t.broken = true;
            });
        }
        self.released_total += pages;
        pages
    }
}
