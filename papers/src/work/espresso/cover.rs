//! Covers: sums of cubes, which recursion splits at an input (Brayton et al. 1984, §3 and §4.1):
//! first at the one that most cubes use both ways. A cover that uses no input both ways is a
//! tautology only if it has the full cube.

use super::cube::{Cube, EITHER, ONE, ZERO};
use std::collections::BTreeMap;

pub type Cover = Vec<Cube>;

pub struct Space {
    /// At most 30.
    pub inputs: usize,
    pub outputs: u32,
    pub full: Cube,
}

impl Space {
    pub fn new(inputs: usize, outputs: u32) -> Self {
        Self { inputs, outputs, full: Cube::full(inputs, outputs) }
    }

    fn output(&self, output: u32) -> Cube {
        self.full.with_outputs(1 << output)
    }

    pub fn cofactor<'a>(&self, cover: impl IntoIterator<Item = &'a Cube>, by: &Cube) -> Cover {
        let meeting = cover.into_iter().filter(|cube| cube.meets(by));
        meeting.map(|cube| cube.cofactor(by, &self.full)).collect()
    }

    pub fn is_tautology(&self, cover: &[Cube]) -> bool {
        (0..self.outputs).all(|output| self.is_tautology_for_one(&self.cofactor(cover, &self.output(output))))
    }

    /// When every cube has all outputs.
    fn is_tautology_for_one(&self, cover: &[Cube]) -> bool {
        if cover.iter().any(Cube::has_no_literal) {
            return true;
        }
        // Even if no cubes overlap.
        let points: u64 = cover.iter().map(|cube| 1u64 << (self.inputs as u32 - cube.literals())).sum();
        if points < 1 << self.inputs {
            return false;
        }
        match self.split(cover) {
            Some((input, true)) => [ZERO, ONE].into_iter().all(|value| {
                let half = self.cofactor(cover, &self.full.with_input(input, value));
                self.is_tautology_for_one(&half)
            }),
            _ => false,
        }
    }

    pub fn complement(&self, cover: &[Cube]) -> Cover {
        // The same product for several outputs is one cube.
        let mut outputs_of: BTreeMap<Cube, u32> = BTreeMap::new();
        for output in 0..self.outputs {
            for product in self.complement_for_one(self.cofactor(cover, &self.output(output))) {
                *outputs_of.entry(product).or_default() |= 1 << output;
            }
        }
        outputs_of.iter().map(|(product, outputs)| product.with_outputs(*outputs)).collect()
    }

    fn complement_for_one(&self, cover: Cover) -> Cover {
        if cover.iter().any(Cube::has_no_literal) {
            return Vec::new();
        }
        if let [cube] = cover.as_slice() {
            // De Morgan.
            let literals = (0..self.inputs).filter(|input| cube.input(*input) != EITHER);
            return literals.map(|input| self.full.with_input(input, EITHER ^ cube.input(input))).collect();
        }
        let Some((input, _)) = self.split(&cover) else { return vec![self.full.clone()] };
        let halves = [ZERO, ONE].map(|value| {
            let half = self.cofactor(&cover, &self.full.with_input(input, value));
            let mut half = self.complement_for_one(half);
            half.sort();
            half
        });
        drop(cover);
        // Cubes in both halves do not depend on the input.
        let [low, high] = &halves;
        let mut merged = Vec::with_capacity(low.len() + high.len());
        for cube in low {
            let is_common = high.binary_search(cube).is_ok();
            merged.push(if is_common { cube.clone() } else { cube.with_input(input, ZERO) });
        }
        let own = high.iter().filter(|cube| low.binary_search(cube).is_err());
        merged.extend(own.map(|cube| cube.with_input(input, ONE)));
        merged
    }

    /// And whether cubes use it both ways.
    fn split(&self, cover: &[Cube]) -> Option<(usize, bool)> {
        let mut best = None;
        for input in 0..self.inputs {
            let count = |value| cover.iter().filter(|cube| cube.input(input) == value).count();
            let (zeros, ones) = (count(ZERO), count(ONE));
            let rank = (zeros.min(ones) > 0, zeros + ones);
            if zeros + ones > 0 && best.is_none_or(|(_, best)| rank > best) {
                best = Some((input, rank));
            }
        }
        best.map(|(input, (is_binate, _))| (input, is_binate))
    }
}

#[cfg(test)]
mod tests;
