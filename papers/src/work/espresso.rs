//! Minimizes two-level logic, by lists of tiny objects that live for microseconds.
//!
//! **From.** espresso (Zorn and Grunwald 1992), from Brayton et al., "Logic Minimization Algorithms
//! for VLSI Synthesis" (1984).

mod cover;
mod cube;

use super::Load;
use cover::{Cover, Space};
use craton_lab::rng::Rng;
use cube::{Cube, EITHER, ONE, ZERO};

pub fn run(load: &Load) -> u64 {
    let functions = (0..load.of(FUNCTIONS)).map(|number| {
        let mut rng = Rng::new(load.seed, number);
        let space = Space::new(10 + rng.below(3) as usize, 3 + rng.below(4));
        let cubes = 40 + rng.below(40);
        let function = function(&space, cubes, &mut rng);
        minimize(&space, function).iter().fold(number, |sum, cube| sum.wrapping_mul(31).wrapping_add(cube.digest()))
    });
    functions.fold(0, |sum: u64, one| sum.wrapping_mul(31).wrapping_add(one))
}

const FUNCTIONS: u64 = 380;
/// Most functions stop sooner.
const ROUNDS: usize = 6;

fn function(space: &Space, cubes: u32, rng: &mut Rng) -> Cover {
    let cube = |_| {
        let sure = 1 << rng.below(space.outputs);
        let more = (0..space.outputs).filter(|_| rng.one_in(3));
        let outputs = more.fold(sure, |all, output| all | 1 << output);
        let start = space.full.with_outputs(outputs);
        (0..space.inputs).fold(start, |cube, input| match rng.below(4) {
            0 => cube.with_input(input, ZERO),
            1 => cube.with_input(input, ONE),
            _ => cube,
        })
    };
    (0..cubes).map(cube).collect()
}

/// The same points with no more cubes.
fn minimize(space: &Space, function: Cover) -> Cover {
    let off = space.complement(&function);
    let mut best = irredundant(space, expand(space, function, &off));
    for _ in 1..ROUNDS {
        let next = irredundant(space, expand(space, reduce(space, best.clone()), &off));
        if cost(&next) >= cost(&best) {
            break;
        }
        best = next;
    }
    best
}

fn cost(cover: &[Cube]) -> (usize, u32) {
    (cover.len(), cover.iter().map(Cube::literals).sum())
}

/// Without points of `off`; drops cubes that another then covers.
fn expand(space: &Space, mut cover: Cover, off: &[Cube]) -> Cover {
    // The most literals: least likely to be covered.
    cover.sort_by_key(|cube| (std::cmp::Reverse(cube.literals()), cube.digest()));
    let mut grown: Cover = Vec::new();
    for mut cube in cover {
        if grown.iter().any(|other| other.covers(&cube)) {
            continue;
        }
        let is_free = |cube: &Cube| !off.iter().any(|other| other.meets(cube));
        for input in 0..space.inputs {
            let larger = cube.with_input(input, EITHER);
            if larger != cube && is_free(&larger) {
                cube = larger;
            }
        }
        for output in 0..space.outputs {
            let larger = cube.with_outputs(cube.outputs() | 1 << output);
            if larger != cube && is_free(&larger) {
                cube = larger;
            }
        }
        grown.retain(|other| !cube.covers(other));
        grown.push(cube);
    }
    grown
}

/// Drops cubes whose points the others have.
fn irredundant(space: &Space, mut cover: Cover) -> Cover {
    let mut at = 0;
    while at < cover.len() {
        let cube = cover.swap_remove(at);
        if !space.is_tautology(&space.cofactor(&cover, &cube)) {
            // To its place, and the last one back to the end.
            cover.push(cube);
            let last = cover.len() - 1;
            cover.swap(at, last);
            at += 1;
        }
    }
    cover
}

/// As small as the others allow, so that expand can go another way.
fn reduce(space: &Space, mut cover: Cover) -> Cover {
    for at in 0..cover.len() {
        let others = cover.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, cube)| cube);
        let missing = space.complement(&space.cofactor(others, &cover[at]));
        let around = missing.into_iter().reduce(|around, cube| around.or(&cube));
        if let Some(around) = around {
            cover[at] = cover[at].and(&around);
        }
    }
    cover
}

#[cfg(test)]
mod tests;
