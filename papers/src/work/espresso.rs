//! Two-level logic, made smaller.
//!
//! **What.** A random function is a list of cubes. Rounds of expand, irredundant and reduce look
//! for a shorter list of the same function, by lists of tiny objects that live for microseconds.
//! **From.** espresso (Zorn and Grunwald, "Empirical measurements of six allocation-intensive C
//! programs", 1992; SPEC; mimalloc-bench), from the book that it came with: Brayton, Hachtel,
//! McMullen and Sangiovanni-Vincentelli, "Logic Minimization Algorithms for VLSI Synthesis" (1984).
//! **Units.** Functions, of 10 to 12 inputs, 3 to 6 outputs and 40 to 79 cubes.

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

/// Functions of the full load.
const FUNCTIONS: u64 = 380;
/// Rounds at most; most functions stop sooner.
const ROUNDS: usize = 6;

/// A cover of random cubes. Half of them have a literal of an input, a third or more an output.
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

/// A cover of the same points with no more cubes.
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

/// Cubes, then literals.
fn cost(cover: &[Cube]) -> (usize, u32) {
    (cover.len(), cover.iter().map(Cube::literals).sum())
}

/// Makes each cube as large as it can be without a point of `off`, and drops those that it then covers.
fn expand(space: &Space, mut cover: Cover, off: &[Cube]) -> Cover {
    // Those with the most literals are the least likely to be covered by others' growth.
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

/// Drops the cubes whose points the others have.
fn irredundant(space: &Space, mut cover: Cover) -> Cover {
    let mut at = 0;
    while at < cover.len() {
        let cube = cover.swap_remove(at);
        if !space.is_tautology(&space.cofactor(&cover, &cube)) {
            // Back to its place; the one that swap_remove put there goes to the end again.
            cover.push(cube);
            let last = cover.len() - 1;
            cover.swap(at, last);
            at += 1;
        }
    }
    cover
}

/// Makes each cube as small as the others allow, so that expand can take another way.
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
mod tests {
    use super::*;

    /// A cover from the seed.
    pub fn random(space: &Space, cubes: u32, seed: u64) -> Cover {
        function(space, cubes, &mut Rng::new(seed, 1))
    }

    /// Every point, as a cube.
    pub fn points(space: &Space) -> Vec<Cube> {
        let inputs = |bits: u32| {
            let value = move |input: usize| if bits >> input & 1 == 1 { ONE } else { ZERO };
            (0..space.inputs).fold(space.full.clone(), |cube, input| cube.with_input(input, value(input)))
        };
        let of_output =
            |output: u32| (0..1u32 << space.inputs).map(move |bits| inputs(bits).with_outputs(1u32 << output));
        (0..space.outputs).flat_map(of_output).collect()
    }

    /// Whether the cover has a point.
    pub fn has(cover: &[Cube], point: &Cube) -> bool {
        cover.iter().any(|cube| cube.covers(point))
    }

    #[test]
    fn the_result_is_the_same_function_with_fewer_cubes() {
        let mut saved = 0;
        for seed in 0..20 {
            let space = Space::new(6, 3);
            let cover = random(&space, 16, seed);
            let least = minimize(&space, cover.clone());
            for point in points(&space) {
                assert_eq!(has(&cover, &point), has(&least, &point), "seed {seed}, {point:?}");
            }
            assert!(least.len() <= cover.len());
            saved += cover.len() - least.len();
        }
        assert!(saved > 20, "{saved} cubes of 320");
    }

    #[test]
    fn no_cube_of_the_result_can_go() {
        let space = Space::new(6, 2);
        for seed in 0..10 {
            let least = minimize(&space, random(&space, 12, seed));
            for i in 0..least.len() {
                let mut others = least.clone();
                let gone = others.swap_remove(i);
                assert!(points(&space).iter().any(|point| gone.covers(point) && !has(&others, point)), "seed {seed}");
            }
        }
    }
}
