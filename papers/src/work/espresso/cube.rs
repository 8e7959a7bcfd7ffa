//! Cubes: products of literals and outputs, each a small object on the heap (Brayton et al. 1984,
//! §2). Two bits an input, 16 inputs a word: 01 the input is 0, 10 it is 1, 11 either, 00 no point.
//! Inputs beyond the last stay 11. The last word has a bit for each output.

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cube(Box<[u32]>);

/// Inputs.
const PER_WORD: usize = 16;
const LOWER: u32 = 0x5555_5555;

pub const ZERO: u32 = 0b01;
pub const ONE: u32 = 0b10;
pub const EITHER: u32 = 0b11;

impl Cube {
    /// Outputs are 1 to 31.
    pub fn full(inputs: usize, outputs: u32) -> Self {
        let words = std::iter::repeat_n(u32::MAX, inputs.div_ceil(PER_WORD));
        Self(words.chain([(1 << outputs) - 1]).collect())
    }

    fn both(&self, other: &Self, of: impl Fn(u32, u32) -> u32) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(a, b)| of(*a, *b)).collect())
    }

    pub fn and(&self, other: &Self) -> Self {
        self.both(other, |a, b| a & b)
    }

    /// The smallest around both.
    pub fn or(&self, other: &Self) -> Self {
        self.both(other, |a, b| a | b)
    }

    /// Allows what `by` forbids, within `full`.
    pub fn cofactor(&self, by: &Self, full: &Self) -> Self {
        Self(self.0.iter().zip(&by.0).zip(&full.0).map(|((a, by), full)| (a | !by) & full).collect())
    }

    /// Whether they have a point in common.
    pub fn meets(&self, other: &Self) -> bool {
        let (outputs, inputs) = self.0.split_last().unwrap_or((&0, &[]));
        let inputs_meet = inputs.iter().zip(&other.0).all(|(a, b)| {
            let common = a & b;
            (common | common >> 1) & LOWER == LOWER
        });
        inputs_meet && outputs & other.outputs() != 0
    }

    pub fn covers(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).all(|(a, b)| b & !a == 0)
    }

    pub fn outputs(&self) -> u32 {
        self.0.last().copied().unwrap_or(0)
    }

    pub fn with_outputs(&self, outputs: u32) -> Self {
        let mut words = self.0.clone();
        if let Some(last) = words.last_mut() {
            *last = outputs;
        }
        Self(words)
    }

    pub fn input(&self, input: usize) -> u32 {
        self.0[input / PER_WORD] >> (input % PER_WORD * 2) & EITHER
    }

    pub fn with_input(&self, input: usize, allowed: u32) -> Self {
        let mut words = self.0.clone();
        let shift = input % PER_WORD * 2;
        words[input / PER_WORD] = words[input / PER_WORD] & !(EITHER << shift) | allowed << shift;
        Self(words)
    }

    pub fn literals(&self) -> u32 {
        let (_, inputs) = self.0.split_last().unwrap_or((&0, &[]));
        inputs.iter().map(|word| word.count_zeros()).sum()
    }

    pub fn has_no_literal(&self) -> bool {
        self.0.split_last().is_some_and(|(_, inputs)| inputs.iter().all(|word| *word == u32::MAX))
    }

    pub fn digest(&self) -> u64 {
        self.0.iter().fold(0, |sum: u64, word| sum.wrapping_mul(0x100_0000_01b3).wrapping_add(u64::from(*word)))
    }
}

#[cfg(test)]
mod tests;
