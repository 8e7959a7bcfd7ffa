//! Lists of slabs, linked by the slabs' indices. Of each [`Kind`] a slab is in one list at most.

const NIL: u32 = u32::MAX;
pub(super) const UNLISTED: usize = usize::MAX;

#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// By class and occupancy.
    Level,
    /// By the largest gap.
    Gap,
}

#[derive(Clone, Copy)]
pub(super) struct Link {
    pub list: usize,
    before: u32,
    behind: u32,
}

impl Link {
    pub const NEW: Self = Self { list: UNLISTED, before: NIL, behind: NIL };
}

pub(super) trait Linked {
    fn links(&mut self) -> &mut [Link; 2];

    fn link(&self, kind: Kind) -> Link;
}

pub(super) struct Lists {
    kind: Kind,
    heads: Box<[u32]>,
}

fn found(index: u32) -> Option<usize> {
    (index != NIL).then_some(index as usize)
}

impl Lists {
    pub fn new(kind: Kind, lists: usize) -> Self {
        Self { kind, heads: vec![NIL; lists].into() }
    }

    pub fn first(&self, list: usize) -> Option<usize> {
        found(self.heads[list])
    }

    pub fn behind(&self, slabs: &[impl Linked], index: usize) -> Option<usize> {
        found(slabs[index].link(self.kind).behind)
    }

    /// To the front of a list, or out of all.
    pub fn relist(&mut self, slabs: &mut [impl Linked], index: usize, list: usize) {
        let kind = self.kind as usize;
        let old = slabs[index].link(self.kind);
        if old.list != UNLISTED {
            match found(old.before) {
                None => self.heads[old.list] = old.behind,
                Some(before) => slabs[before].links()[kind].behind = old.behind,
            }
            if let Some(behind) = found(old.behind) {
                slabs[behind].links()[kind].before = old.before;
            }
        }
        let mut link = Link { list, ..Link::NEW };
        if list != UNLISTED {
            link.behind = std::mem::replace(&mut self.heads[list], index as u32);
            if let Some(head) = found(link.behind) {
                slabs[head].links()[kind].before = index as u32;
            }
        }
        slabs[index].links()[kind] = link;
    }
}
