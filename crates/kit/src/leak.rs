//! The search for leaks: which buffers are unreachable.
//!
//! **What.** A conservative mark: each aligned word of the roots or a marked buffer that points at
//! or into a buffer, or at its end, marks it. Of the unreachable rest, the buffers that no other
//! one leads to are leaks, with the buffers below them; of a cycle, its first buffer.
//!
//! **From.** Boehm and Weiser 1988, as Solaris's `::findleaks` has it.
//!
//! **State.** The caller's memory: buffers by address with a mark each; a stack of unread buffers.
//!
//! **Cost.** A binary search for each word that lies between the first and the last buffer.

/// A live buffer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
#[repr(C)]
pub struct Suspect {
    pub address: usize,
    /// Bytes; one of none is pointed at by its address alone.
    pub size: usize,
    pub state: State,
    /// Where the caller finds it.
    pub index: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
#[repr(u32)]
pub enum State {
    /// Nothing leads to it, as far as known.
    #[default]
    Lost,
    /// A root leads to it, perhaps through others.
    Reached,
    /// It is lost, and hangs on another one that is.
    Hangs,
    /// It is lost, and reported.
    Told,
}

/// The suspects, by address, none overlapping another, and room for as many numbers.
pub struct Search<'a> {
    suspects: &'a mut [Suspect],
    stack: &'a mut [u32],
    depth: usize,
    /// The first and the last address that a suspect has.
    first: usize,
    last: usize,
}

impl<'a> Search<'a> {
    /// Begins a search. `suspects` need not be sorted; `stack` is as long.
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

    /// The suspect that a word points at, into, or at the end of, as a pointer behind the last
    /// element does. Redzones are between buffers, so no other one begins there.
    fn find_by_pointer(&self, word: usize) -> Option<usize> {
        self.find(word).or_else(|| {
            let i = self.find(word.checked_sub(1)?)?;
            (word == self.suspects[i].address + self.suspects[i].size).then_some(i)
        })
    }

    /// Where the suspect ends that an address lies in, if it lies in one.
    pub fn end_of_suspect_at(&self, address: usize) -> Option<usize> {
        let i = self.find(address).filter(|i| self.suspects[*i].size > 0)?;
        Some(self.suspects[i].address + self.suspects[i].size)
    }

    /// Where the first suspect of some bytes begins behind an address.
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

    /// Marks what a root's word reaches; `words` reads a buffer's words, by address and size.
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

    /// After all roots: reports each leak, with the other buffers and bytes that hang on it.
    pub fn finish(
        &mut self,
        words: &mut impl FnMut(usize, usize, &mut dyn FnMut(usize)),
        mut leak: impl FnMut(&Suspect, usize, usize),
    ) {
        // First those that another one leads to, then cycles: a buffer on no other's way, the rest.
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
