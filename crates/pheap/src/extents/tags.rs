//! Finds a page's node: NVAlloc's R-tree (§4.3), as a table of two levels. Only a range's first and
//! last page have a valid tag; a reader checks it against the node.

const PART: usize = 4096;

pub(super) struct Tags {
    parts: Vec<Box<[u32; PART]>>,
}

impl Tags {
    pub(super) fn new() -> Self {
        Self { parts: Vec::new() }
    }

    pub(super) fn grow(&mut self, end: u64) {
        let parts = (end as usize).div_ceil(PART);
        while self.parts.len() < parts {
            self.parts.push(Box::new([u32::MAX; PART]));
        }
    }

    #[inline]
    pub(super) fn get(&self, page: u64) -> Option<u32> {
        let tag = self.parts.get(page as usize / PART)?[page as usize % PART];
        (tag != u32::MAX).then_some(tag)
    }

    #[inline]
    pub(super) fn set(&mut self, page: u64, tag: u32) {
        self.parts[page as usize / PART][page as usize % PART] = tag;
    }
}
