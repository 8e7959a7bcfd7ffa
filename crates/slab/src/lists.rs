//! The slabs of a cache that have room, by how full they are.
//!
//! **What.** A list of complete slabs, and one for each eighth of fullness. The fullest serve
//! first, so that nearly empty ones are left alone until their last objects come back.
//!
//! **From.** Bonwick94 §3.2 has one list, with complete slabs at its end. By fullness, as
//! TCMalloc's central free list (TEMERAIRE §3); by eighths of the capacity, since the bit width of
//! the count does not tell nearly full slabs apart.
//!
//! **State.** Doubly linked through the slabs' records; a bit for each list that is not empty.
//!
//! **Cost.** Each operation is O(1) and touches at most three records.

/// How the slabs of one kind are linked: where their neighbours in a list are noted.
pub(crate) trait Links {
    /// Names a slab.
    type Slab: Copy;
    fn next(&self, slab: Self::Slab) -> Option<Self::Slab>;
    fn prev(&self, slab: Self::Slab) -> Option<Self::Slab>;
    fn set_next(&self, slab: Self::Slab, to: Option<Self::Slab>);
    fn set_prev(&self, slab: Self::Slab, to: Option<Self::Slab>);
}

/// One list, by its first slab.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List<S>(Option<S>);

impl<S: Copy> List<S> {
    pub(crate) const EMPTY: Self = Self(None);

    #[inline]
    pub(crate) fn first(&self) -> Option<S> {
        self.0
    }

    #[inline]
    pub(crate) fn push(&mut self, slab: S, links: &impl Links<Slab = S>) {
        links.set_prev(slab, None);
        links.set_next(slab, self.0);
        if let Some(first) = self.0 {
            links.set_prev(first, Some(slab));
        }
        self.0 = Some(slab);
    }

    /// Says whether the list is empty then.
    #[inline]
    pub(crate) fn unlink(&mut self, slab: S, links: &impl Links<Slab = S>) -> bool {
        let (next, prev) = (links.next(slab), links.prev(slab));
        match prev {
            Some(prev) => links.set_next(prev, next),
            None => self.0 = next,
        }
        if let Some(next) = next {
            links.set_prev(next, prev);
        }
        prev.is_none() && next.is_none()
    }

    pub(crate) fn iter<'a, L: Links<Slab = S>>(&self, links: &'a L) -> impl Iterator<Item = S> + use<'a, S, L> {
        core::iter::successors(self.0, |slab| links.next(*slab))
    }
}

/// How many lists there are: of complete slabs, and of eighths of fullness.
pub(crate) const LISTS: usize = EIGHTHS + 1;
/// The list of complete slabs.
pub(crate) const COMPLETE: usize = 0;
/// The number of no list: that of full slabs.
pub(crate) const FULL: usize = LISTS;
const EIGHTHS: usize = 8;
/// Bits behind the point of [`Lists::scale`]: enough for `u16`s up to [`MOST`] objects.
const POINT: u32 = 20;
/// Most objects of a slab: its square is not above `EIGHTHS << POINT`.
const MOST: u16 = 2896;

/// Slabs with room, by fullness.
#[derive(Debug)]
pub(crate) struct Lists<S> {
    lists: [List<S>; LISTS],
    /// A bit for each list that is not empty.
    filled: u32,
    /// Lists for each object in use, and a little more, with [`POINT`] bits behind the point.
    scale: u32,
}

impl<S: Copy> Lists<S> {
    /// Without slabs, for slabs of `capacity` objects. All zeros when that is 0.
    pub(crate) const fn new(capacity: u16) -> Self {
        assert!(capacity <= MOST);
        let scale = if capacity == 0 { 0 } else { ((EIGHTHS as u32) << POINT) / capacity as u32 + 1 };
        Self { lists: [List::EMPTY; LISTS], filled: 0, scale }
    }

    /// The list of a slab of a level up to its capacity: a higher number is a fuller slab.
    #[inline]
    pub(crate) fn list_of(&self, level: u16) -> usize {
        // From 1 on the sum's whole part has one more, and at the capacity, by the little more,
        // two.
        ((u32::from(level) * self.scale + (1 << POINT) - 1) >> POINT) as usize
    }

    /// Whether one object more or less is another list.
    #[inline]
    pub(crate) fn is_last_of_list(&self, level: u16, by: i16) -> bool {
        let at = u32::from(level) * self.scale + (1 << POINT) - 1;
        (at ^ at.wrapping_add_signed(i32::from(by) * self.scale as i32)) >> POINT != 0
    }

    /// The slab at the front of the fullest list.
    #[inline]
    pub(crate) fn fullest(&self) -> Option<S> {
        let list = self.filled.checked_ilog2()?;
        self.lists[list as usize].first()
    }

    /// One of the lists.
    pub(crate) fn list(&self, list: usize) -> List<S> {
        self.lists[list]
    }

    /// Puts a slab on a list.
    #[inline]
    pub(crate) fn push(&mut self, slab: S, list: usize, links: &impl Links<Slab = S>) {
        self.lists[list].push(slab, links);
        self.filled |= 1 << list;
    }

    /// Takes a slab off its list.
    #[inline]
    pub(crate) fn unlink(&mut self, slab: S, list: usize, links: &impl Links<Slab = S>) {
        if self.lists[list].unlink(slab, links) {
            self.filled &= !(1 << list);
        }
    }

    /// Moves the first slab of the fullest list, which has become fuller, to a list with none, if any.
    #[inline]
    pub(crate) fn rise(&mut self, slab: S, from: usize, to: usize, links: &impl Links<Slab = S>) {
        let next = links.next(slab);
        self.lists[from] = List(next);
        match next {
            Some(next) => links.set_prev(next, None),
            None => self.filled &= !(1 << from),
        }
        if to < FULL {
            debug_assert!(self.lists[to].0.is_none() && links.prev(slab).is_none());
            self.lists[to] = List(Some(slab));
            links.set_next(slab, None);
            self.filled |= 1 << to;
        }
    }

    /// Whether list `list` is known to be not empty.
    pub(crate) fn is_filled(&self, list: usize) -> bool {
        (self.filled >> list) & 1 == 1
    }
}

#[cfg(test)]
mod tests;
