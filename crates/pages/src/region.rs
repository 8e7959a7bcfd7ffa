//! Regions: pack spans across hugepages, for programs whose slack exceeds their small spans.
//!
//! **From.** TEMERAIRE §4.5: 1 GiB, best fit over all its pages; it ends with its last span.
//! **State.** It begins at a multiple of its size, so a page names it. Its first tracker links it
//! into the bin of its longest free range (P8).
//! **Cost.** A request walks one region's 512 trackers: little beside its first touches.

use crate::tracker::{Left, Place, Tracker, Trackers};
use core::marker::PhantomData;
use craton_base::{Floor, Geometry, HugePageId, HugePages, PageId, PageRange, Pages};

/// 1 GiB is 2^17 pages.
const BINS: usize = 18;
const LOOKS: usize = 4;

pub(crate) struct Regions<G> {
    bins: [u32; BINS],
    held: Held,
    forbidden: bool,
    geometry: PhantomData<G>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Occupied {
    pub(crate) zeroed: bool,
    /// Hugepages without memory.
    pub(crate) missing: HugePages,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Held {
    pub(crate) idle: u32,
    pub(crate) idle_backed: u32,
    pub(crate) idle_pages: u32,
    /// Free and backed pages.
    pub(crate) between: u32,
}

impl Held {
    pub(crate) fn of<G: Geometry>(t: &Tracker<G>) -> Self {
        let backed = t.backed_pages();
        match t.used_pages() {
            0 => Self { idle: 1, idle_backed: u32::from(backed > 0), idle_pages: backed, between: 0 },
            used => Self { between: backed - used, ..Self::default() },
        }
    }

    pub(crate) fn add(&mut self, more: Self) {
        self.idle += more.idle;
        self.idle_backed += more.idle_backed;
        self.idle_pages += more.idle_pages;
        self.between += more.between;
    }

    fn sub(&mut self, less: Self) {
        self.idle -= less.idle;
        self.idle_backed -= less.idle_backed;
        self.idle_pages -= less.idle_pages;
        self.between -= less.between;
    }
}

fn bin(longest: u32) -> usize {
    (u32::BITS - longest.leading_zeros()).saturating_sub(1) as usize
}

pub(crate) fn head_of<G: Geometry>(id: HugePageId) -> HugePageId {
    HugePageId(id.0 & !(G::REGION - 1))
}

/// First page in the region, and length.
fn free_ranges<G: Geometry>(trackers: &Trackers<G>, head: HugePageId, mut each: impl FnMut(u32, u32)) {
    let (mut start, mut len) = (0, 0);
    for i in 0..G::REGION {
        let t = &trackers[(head.0 + i) as usize];
        let base = i * G::PAGES;
        if t.used_pages() == 0 {
            if len == 0 {
                start = base;
            }
            len += G::PAGES;
            continue;
        }
        for (first, run) in t.used().clear_runs() {
            if first == 0 && len > 0 {
                len += run;
            } else {
                if len > 0 {
                    each(start, len);
                }
                (start, len) = (base + first, run);
            }
            if first + run < G::PAGES {
                each(start, len);
                len = 0;
            }
        }
        if t.used().contains(G::PAGES - 1) && len > 0 {
            each(start, len);
            len = 0;
        }
    }
    if len > 0 {
        each(start, len);
    }
}

pub(crate) fn longest<G: Geometry>(trackers: &Trackers<G>, head: HugePageId) -> u32 {
    let mut longest = 0;
    free_ranges(trackers, head, |_, len| longest = longest.max(len));
    longest
}

/// It keeps no free memory, and needs no collapse.
fn is_unsure<G: Geometry>(trackers: &Trackers<G>, page: PageId) -> bool {
    let t = &trackers[G::hugepage(page).0 as usize];
    t.left == Left::Unsure && !t.intact && !t.collapsing
}

impl<G: Geometry> Regions<G> {
    pub(crate) const EMPTY: Self = Self {
        bins: [0; BINS],
        held: Held { idle: 0, idle_backed: 0, idle_pages: 0, between: 0 },
        forbidden: false,
        geometry: PhantomData,
    };
    const PAGES: u32 = G::REGION * G::PAGES;
    /// 1/64, 16 MiB: below, a region does not pay.
    pub(crate) const LEAST_SLACK: u32 = G::REGION.div_ceil(64) * G::PAGES;

    pub(crate) fn set_allowed(&mut self, allowed: bool) {
        self.forbidden = !allowed;
    }

    pub(crate) fn are_allowed(&self) -> bool {
        !self.forbidden
    }

    pub(crate) fn held(&self) -> Held {
        self.held
    }

    pub(crate) fn change<R>(&mut self, t: &mut Tracker<G>, change: impl FnOnce(&mut Tracker<G>) -> R) -> R {
        self.held.sub(Held::of(t));
        let result = change(t);
        self.held.add(Held::of(t));
        result
    }

    pub(crate) fn walk<'a>(&'a self, trackers: &'a Trackers<G>) -> impl Iterator<Item = HugePageId> + use<'a, G> {
        self.bins.iter().flat_map(move |head| {
            let mut next = head.checked_sub(1);
            core::iter::from_fn(move || {
                let id = next?;
                next = trackers[id as usize].next.checked_sub(1);
                Some(HugePageId(id))
            })
        })
    }

    /// P8.
    pub(crate) fn is_listed(&self, trackers: &Trackers<G>, head: HugePageId) -> bool {
        let mut at = self.bins[bin(trackers[head.0 as usize].run)].checked_sub(1);
        while let Some(id) = at {
            if id == head.0 {
                return true;
            }
            at = trackers[id as usize].next.checked_sub(1);
        }
        false
    }

    fn link(&mut self, trackers: &mut Trackers<G>, head: HugePageId) {
        let longest = longest(trackers, head);
        let first = core::mem::replace(&mut self.bins[bin(longest)], head.0 + 1);
        if let Some(first) = first.checked_sub(1) {
            trackers[first as usize].prev = head.0 + 1;
        }
        let t = &mut trackers[head.0 as usize];
        (t.run, t.next, t.prev) = (longest, first, 0);
    }

    fn unlink(&mut self, trackers: &mut Trackers<G>, head: HugePageId) {
        let t = &mut trackers[head.0 as usize];
        let (longest, next, prev) = (t.run, t.next, t.prev);
        (t.next, t.prev) = (0, 0);
        if let Some(next) = next.checked_sub(1) {
            trackers[next as usize].prev = prev;
        }
        match prev.checked_sub(1) {
            Some(prev) => trackers[prev as usize].next = next,
            None => self.bins[bin(longest)] = next,
        }
    }

    /// The smallest sufficient bin.
    fn find_in_some(&self, trackers: &Trackers<G>, pages: u32, align: u32, looks: usize) -> Option<PageId> {
        (bin(pages)..BINS).find_map(|b| {
            let mut at = self.bins[b].checked_sub(1);
            for _ in 0..looks {
                let head = HugePageId(at?);
                if trackers[head.0 as usize].run >= pages
                    && let Some(place) = Self::best_fit(trackers, head, pages, align)
                {
                    return Some(place);
                }
                at = trackers[head.0 as usize].next.checked_sub(1);
            }
            None
        })
    }

    fn best_fit(trackers: &Trackers<G>, head: HugePageId, pages: u32, align: u32) -> Option<PageId> {
        let mut best: Option<(u32, u32)> = None;
        free_ranges(trackers, head, |first, len| {
            let start = G::page(head, first).0;
            let fits = |at: &u32| at - start <= len && len - (at - start) >= pages;
            if let Some(at) = start.checked_next_multiple_of(align).filter(fits)
                && best.is_none_or(|(_, l)| len < l)
            {
                best = Some((at, len));
            }
        });
        best.map(|(at, _)| PageId(at))
    }

    /// `in_need`: tries all regions.
    pub(crate) fn find(&self, trackers: &Trackers<G>, pages: u32, align: u32, in_need: bool) -> Option<PageRange> {
        if pages > Self::PAGES {
            return None;
        }
        let looks = if in_need { usize::MAX } else { LOOKS };
        Some(PageRange::new(self.find_in_some(trackers, pages, align, looks)?, Pages(pages)))
    }

    pub(crate) fn begin(&mut self, trackers: &mut Trackers<G>, head: HugePageId) {
        for i in head.0..head.0 + G::REGION {
            let t = &mut trackers[i as usize];
            t.reset();
            t.place = Place::Region;
            self.held.add(Held::of(t));
        }
        self.link(trackers, head);
    }

    pub(crate) fn end(&mut self, trackers: &mut Trackers<G>, head: HugePageId) {
        self.unlink(trackers, head);
        (head.0..head.0 + G::REGION).for_each(|i| self.held.sub(Held::of(&trackers[i as usize])));
    }

    pub(crate) fn occupy(
        &mut self,
        trackers: &mut Trackers<G>,
        range: PageRange,
        begins: bool,
        huge: impl Fn(HugePageId, &Tracker<G>) -> bool,
    ) -> Occupied {
        let head = head_of::<G>(G::hugepage(range.first));
        self.unlink(trackers, head);
        let (mut zeroed, mut missing) = (true, 0);
        for (id, at, len) in G::parts(range) {
            let first = G::page(id, at) == range.first;
            zeroed &= self.change(&mut trackers[id.0 as usize], |t| {
                if t.backed_pages() == 0 {
                    t.intact = huge(id, t);
                    missing += 1;
                }
                match (first, begins, at) {
                    (true, true, _) => t.occupy(at, len),
                    (true, false, 1..) => t.extend(at, len),
                    _ => t.carry(at, len),
                }
            });
        }
        self.link(trackers, head);
        Occupied { zeroed, missing: HugePages(missing) }
    }

    /// Returns a region left without spans.
    pub(crate) fn vacate(&mut self, trackers: &mut Trackers<G>, range: PageRange, whole: bool) -> Option<HugePageId> {
        let head = head_of::<G>(G::hugepage(range.first));
        self.unlink(trackers, head);
        for (id, at, len) in G::parts(range) {
            let stays = !whole && id == G::hugepage(range.first) && at > 0;
            self.change(&mut trackers[id.0 as usize], |t| match stays {
                true => t.truncate(at, len),
                false => t.vacate(at, len),
            });
        }
        self.link(trackers, head);
        (trackers[head.0 as usize].run == Self::PAGES).then_some(head)
    }

    /// Of spans that may stay untouched.
    pub(crate) fn unback_unsure(
        &mut self,
        trackers: &mut Trackers<G>,
        floor: &mut impl Floor,
        range: PageRange,
    ) -> u64 {
        let (mut at, mut pages) = (range.first, 0);
        while at < range.end() {
            let (mut end, unsure) = (at, is_unsure(trackers, at));
            while end < range.end() && is_unsure(trackers, end) == unsure {
                end = G::page(HugePageId(G::hugepage(end).0 + 1), 0).min(range.end());
            }
            let run = PageRange::new(at, Pages(end.0 - at.0));
            if unsure && floor.unback(run).is_ok() {
                for (id, at, len) in G::parts(run) {
                    pages += u64::from(self.change(&mut trackers[id.0 as usize], |t| t.unback(at, len)));
                }
            }
            at = end;
        }
        pages
    }

    pub(crate) fn is_free(&self, trackers: &Trackers<G>, range: PageRange) -> bool {
        let region = head_of::<G>(G::hugepage(PageId(range.first.0 - 1)));
        let room = G::page(region, Self::PAGES).0 - range.first.0;
        range.len.0 <= room && G::parts(range).all(|(id, at, len)| !trackers[id.0 as usize].used().any(at, len))
    }

    /// Returns hugepages and pages.
    pub(crate) fn shrink(&mut self, trackers: &mut Trackers<G>, floor: &mut impl Floor, want: u32) -> (u32, u64) {
        let (mut done, mut pages) = (0, 0);
        while done < want && self.held.idle_backed > 0 {
            let idle = |i: u32| {
                let t = &trackers[i as usize];
                t.used_pages() == 0 && t.backed_pages() > 0 && !t.collapsing
            };
            let found = self.walk(trackers).find_map(|head| {
                let end = head.0 + G::REGION;
                let first = (head.0..end).find(|i| idle(*i))?;
                Some((HugePageId(first), (first..end).take((want - done) as usize).take_while(|i| idle(*i)).count()))
            });
            let Some((first, len)) = found else { break };
            let len = HugePages(len as u32);
            if floor.unback(G::run(first, len)).is_err() {
                break;
            }
            for i in first.0..first.0 + len.0 {
                pages += u64::from(self.change(&mut trackers[i as usize], Tracker::unbacked));
            }
            done += len.0;
        }
        (done, pages)
    }

    /// About `most`, below `granted`; returns how many.
    pub(crate) fn break_up(
        &mut self,
        trackers: &mut Trackers<G>,
        floor: &mut impl Floor,
        granted: HugePages,
        most: u64,
    ) -> u64 {
        let mut pages = 0;
        for id in (0..granted.0).map(HugePageId) {
            if pages >= most || self.held.between == 0 {
                break;
            }
            let t = &mut trackers[id.0 as usize];
            if t.place != Place::Region || t.collapsing || t.used_pages() == 0 {
                continue;
            }
            for (at, len) in t.free_backed().complement().clear_runs() {
                if floor.unback(G::part(id, at, len)).is_ok() {
                    pages += u64::from(self.change(t, |t| t.unback(at, len)));
                }
            }
        }
        pages
    }
}

#[cfg(test)]
mod tests;
