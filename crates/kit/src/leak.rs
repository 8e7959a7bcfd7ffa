//! The search for leaks: which buffers are unreachable (Boehm and Weiser 1988, as Solaris's
//! `::findleaks`).
//!
//! Each aligned word of a root or marked buffer that points at or into a buffer, or at its end,
//! marks it. Of the rest, buffers that no other leads to are leaks, with those below; of a cycle,
//! its first.

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
#[repr(C)]
pub struct Suspect {
    pub address: usize,
    /// 0: only a pointer to its address reaches it.
    pub size: usize,
    pub state: State,
    pub index: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
#[repr(u32)]
pub enum State {
    #[default]
    Lost,
    Reached,
    /// Another lost one points at it.
    Hangs,
    /// Lost, and reported.
    Told,
}

/// `suspects` do not overlap.
pub struct Search<'a> {
    suspects: &'a mut [Suspect],
    stack: &'a mut [u32],
    depth: usize,
    first: usize,
    last: usize,
}

impl<'a> Search<'a> {
    pub fn new(suspects: &'a mut [Suspect], stack: &'a mut [u32]) -> Self {
        assert!(stack.len() >= suspects.len(), "each suspect is on the stack at most once");
        suspects.sort_unstable_by_key(|s| s.address);
        let first = suspects.first().map_or(usize::MAX, |s| s.address);
        let last = suspects.last().map_or(0, |s| s.address + s.size);
        Self { suspects, stack, depth: 0, first, last }
    }

    fn find(&self, word: usize) -> Option<usize> {
        if word < self.first || word > self.last {
            return None;
        }
        let i = self.suspects.partition_point(|s| s.address <= word).checked_sub(1)?;
        let s = &self.suspects[i];
        (word - s.address < s.size.max(1)).then_some(i)
    }

    /// A pointer behind the last element counts: redzones lie between buffers.
    fn find_by_pointer(&self, word: usize) -> Option<usize> {
        self.find(word).or_else(|| {
            let i = self.find(word.checked_sub(1)?)?;
            (word == self.suspects[i].address + self.suspects[i].size).then_some(i)
        })
    }

    pub fn end_of_suspect_at(&self, address: usize) -> Option<usize> {
        let i = self.find(address).filter(|i| self.suspects[*i].size > 0)?;
        Some(self.suspects[i].address + self.suspects[i].size)
    }

    pub fn next_suspect_after(&self, address: usize) -> Option<usize> {
        let i = self.suspects.partition_point(|s| s.address <= address);
        self.suspects[i..].iter().find(|s| s.size > 0).map(|s| s.address)
    }

    fn see(&mut self, word: usize, from: State, to: State) {
        if let Some(i) = self.find_by_pointer(word).filter(|i| self.suspects[*i].state == from) {
            self.suspects[i].state = to;
            self.stack[self.depth] = i as u32;
            self.depth += 1;
        }
    }

    /// `words` reads a buffer's words, by address and size.
    pub fn root(&mut self, word: usize, words: &mut impl FnMut(usize, usize, &mut dyn FnMut(usize))) {
        self.see(word, State::Lost, State::Reached);
        self.follow(State::Lost, State::Reached, words, &mut |_| {});
    }

    fn follow(
        &mut self,
        from: State,
        to: State,
        words: &mut impl FnMut(usize, usize, &mut dyn FnMut(usize)),
        tell: &mut impl FnMut(&Suspect),
    ) {
        while self.depth > 0 {
            self.depth -= 1;
            let s = self.suspects[self.stack[self.depth] as usize];
            tell(&s);
            words(s.address, s.size, &mut |word| self.see(word, from, to));
        }
    }

    /// Call this after all roots.
    pub fn finish(
        &mut self,
        words: &mut impl FnMut(usize, usize, &mut dyn FnMut(usize)),
        mut leak: impl FnMut(&Suspect, usize, usize),
    ) {
        // First those that lead to others, then cycles.
        for i in 0..self.suspects.len() {
            let s = self.suspects[i];
            if s.state == State::Lost || s.state == State::Hangs {
                words(s.address, s.size, &mut |word| {
                    if let Some(j) =
                        self.find_by_pointer(word).filter(|j| *j != i && self.suspects[*j].state == State::Lost)
                    {
                        self.suspects[j].state = State::Hangs;
                    }
                });
            }
        }
        for state in [State::Lost, State::Hangs] {
            for i in 0..self.suspects.len() {
                let first = self.suspects[i];
                if first.state != state {
                    continue;
                }
                self.suspects[i].state = State::Told;
                let (mut buffers, mut bytes) = (0, 0);
                words(first.address, first.size, &mut |word| self.see(word, State::Hangs, State::Told));
                self.follow(State::Hangs, State::Told, words, &mut |s| {
                    (buffers, bytes) = (buffers + 1, bytes + s.size)
                });
                leak(&first, buffers, bytes);
            }
        }
    }
}

#[cfg(test)]
mod tests;
