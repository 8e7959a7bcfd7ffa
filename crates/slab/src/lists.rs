//! Lists of slabs with room: complete ones, and one for each eighth of fullness. The fullest serve
//! first (TEMERAIRE §3; Bonwick94 §3.2 has one list), so that nearly empty slabs drain.

pub(crate) trait Links {
    type Slab: Copy;
    fn next(&self, slab: Self::Slab) -> Option<Self::Slab>;
    fn prev(&self, slab: Self::Slab) -> Option<Self::Slab>;
    fn set_next(&self, slab: Self::Slab, to: Option<Self::Slab>);
    fn set_prev(&self, slab: Self::Slab, to: Option<Self::Slab>);
}

/// The first slab's previous is the last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List<S>(Option<S>);

impl<S: Copy + PartialEq> List<S> {
    pub(crate) const EMPTY: Self = Self(None);

    #[inline]
    pub(crate) fn first(&self) -> Option<S> {
        self.0
    }

    pub(crate) fn last(&self, links: &impl Links<Slab = S>) -> Option<S> {
        links.prev(self.0?)
    }

    #[inline]
    pub(crate) fn push(&mut self, slab: S, links: &impl Links<Slab = S>) {
        links.set_next(slab, self.0);
        let last = match self.0 {
            Some(first) => {
                let last = links.prev(first);
                links.set_prev(first, Some(slab));
                last
            }
            None => Some(slab),
        };
        links.set_prev(slab, last);
        self.0 = Some(slab);
    }

    #[inline]
    pub(crate) fn unlink(&mut self, slab: S, links: &impl Links<Slab = S>) -> bool {
        let (next, prev) = (links.next(slab), links.prev(slab));
        match prev {
            Some(prev) if self.0 != Some(slab) => links.set_next(prev, next),
            _ => self.0 = next,
        }
        if let Some(behind) = next.or(self.0) {
            links.set_prev(behind, prev);
        }
        self.0.is_none()
    }

    fn rotate(&mut self, links: &impl Links<Slab = S>) {
        if let Some(first) = self.0
            && let (Some(next), Some(last)) = (links.next(first), links.prev(first))
        {
            links.set_next(last, Some(first));
            links.set_next(first, None);
            self.0 = Some(next);
        }
    }

    pub(crate) fn iter<'a, L: Links<Slab = S>>(&self, links: &'a L) -> impl Iterator<Item = S> + use<'a, S, L> {
        core::iter::successors(self.0, |slab| links.next(*slab))
    }
}

pub(crate) const LISTS: usize = EIGHTHS + 1;
pub(crate) const COMPLETE: usize = 0;
pub(crate) const FULL: usize = LISTS;
const EIGHTHS: usize = 8;
/// Fits 32 bits up to [`MOST`] objects.
const POINT: u32 = 20;
/// Its square is at most `EIGHTHS << POINT`.
const MOST: u16 = 2896;

#[derive(Debug)]
pub(crate) struct Lists<S> {
    lists: [List<S>; LISTS],
    filled: u32,
    /// Lists for each object, rounded up, in fixed point.
    scale: u32,
}

impl<S: Copy + PartialEq> Lists<S> {
    pub(crate) const fn new(capacity: u16) -> Self {
        assert!(capacity <= MOST);
        let scale = if capacity == 0 { 0 } else { ((EIGHTHS as u32) << POINT) / capacity as u32 + 1 };
        Self { lists: [List::EMPTY; LISTS], filled: 0, scale }
    }

    #[inline]
    pub(crate) fn list_of(&self, level: u16) -> usize {
        // From 1 on the whole part is one more; rounding makes it two more at the capacity.
        ((u32::from(level) * self.scale + (1 << POINT) - 1) >> POINT) as usize
    }

    #[inline]
    pub(crate) fn is_last_of_list(&self, level: u16, by: i16) -> bool {
        let at = u32::from(level) * self.scale + (1 << POINT) - 1;
        (at ^ at.wrapping_add_signed(i32::from(by) * self.scale as i32)) >> POINT != 0
    }

    #[inline]
    pub(crate) fn fullest(&self) -> Option<S> {
        let list = self.filled.checked_ilog2()?;
        self.lists[list as usize].first()
    }

    pub(crate) fn list(&self, list: usize) -> List<S> {
        self.lists[list]
    }

    #[inline]
    pub(crate) fn push(&mut self, slab: S, list: usize, links: &impl Links<Slab = S>) {
        self.lists[list].push(slab, links);
        self.filled |= 1 << list;
    }

    #[inline]
    pub(crate) fn unlink(&mut self, slab: S, list: usize, links: &impl Links<Slab = S>) {
        if self.lists[list].unlink(slab, links) {
            self.filled &= !(1 << list);
        }
    }

    #[inline]
    pub(crate) fn rise(&mut self, slab: S, from: usize, to: usize, links: &impl Links<Slab = S>) {
        let next = links.next(slab);
        self.lists[from] = List(next);
        match next {
            Some(next) => links.set_prev(next, links.prev(slab)),
            None => self.filled &= !(1 << from),
        }
        if to < FULL {
            debug_assert!(self.lists[to].0.is_none());
            self.lists[to] = List(Some(slab));
            links.set_next(slab, None);
            links.set_prev(slab, Some(slab));
            self.filled |= 1 << to;
        }
    }

    /// The first becomes the last.
    pub(crate) fn pass(&mut self, list: usize, links: &impl Links<Slab = S>) -> Option<S> {
        let first = self.lists[list].first();
        self.lists[list].rotate(links);
        first
    }

    pub(crate) fn is_filled(&self, list: usize) -> bool {
        (self.filled >> list) & 1 == 1
    }
}

#[cfg(test)]
mod tests;
