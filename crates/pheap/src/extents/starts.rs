//! The pages at which ranges begin: a bit for each page; above it a bit for each word that is not
//! 0, up to one word.

const BITS: u64 = 64;

pub(super) struct Starts {
    levels: Vec<Vec<u64>>,
}

impl Starts {
    pub(super) fn new() -> Self {
        Self { levels: vec![Vec::new()] }
    }

    pub(super) fn grow(&mut self, end: u64) {
        let mut words = end.div_ceil(BITS).max(1) as usize;
        let mut level = 0;
        loop {
            if level == self.levels.len() {
                let below = &self.levels[level - 1];
                let summary = below.chunks(BITS as usize).map(|words| {
                    words.iter().enumerate().fold(0, |sum, (bit, word)| sum | u64::from(*word != 0) << bit)
                });
                let summary = summary.collect();
                self.levels.push(summary);
            }
            if self.levels[level].len() < words {
                self.levels[level].resize(words, 0);
            }
            if words == 1 {
                return;
            }
            words = words.div_ceil(BITS as usize);
            level += 1;
        }
    }

    #[inline]
    pub(super) fn insert(&mut self, page: u64) {
        let mut at = page;
        for level in &mut self.levels {
            let word = &mut level[(at / BITS) as usize];
            let before = std::mem::replace(word, *word | 1 << (at % BITS));
            if before != 0 {
                return;
            }
            at /= BITS;
        }
    }

    #[inline]
    pub(super) fn remove(&mut self, page: u64) {
        let mut at = page;
        for level in &mut self.levels {
            let word = &mut level[(at / BITS) as usize];
            *word &= !(1 << (at % BITS));
            if *word != 0 {
                return;
            }
            at /= BITS;
        }
    }

    pub(super) fn last_up_to(&self, page: u64) -> Option<u64> {
        let mut at = page;
        for (height, level) in self.levels.iter().enumerate() {
            let word = level.get((at / BITS) as usize).copied().unwrap_or(0);
            // `at` included.
            let below = word & u64::MAX >> (BITS - 1 - at % BITS);
            if below != 0 {
                let mut found = at / BITS * BITS + u64::from(below.ilog2());
                for lower in self.levels[..height].iter().rev() {
                    found = found * BITS + u64::from(lower[found as usize].ilog2());
                }
                return Some(found);
            }
            at = (at / BITS).checked_sub(1)?;
        }
        None
    }
}
