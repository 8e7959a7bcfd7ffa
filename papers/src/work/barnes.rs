//! Many bodies that attract each other, by an octree of boxes that each step builds and drops.
//!
//! **From.** Barnes and Hut (Nature 324, 1986); barnes of SPLASH-2 (Woo et al., ISCA 1995).
//!
//! Sums in a fixed order, with + − × ÷ √ alone: the same on any machine.

use super::Load;
use craton_lab::rng::Rng;

pub fn run(load: &Load) -> u64 {
    let mut bodies = bodies(&mut Rng::new(load.seed, 0), BODIES);
    for _ in 0..load.of(STEPS) {
        step(&mut bodies);
    }
    bodies.iter().flat_map(|body| body.at).fold(0, |sum, x| sum.wrapping_mul(31).wrapping_add(x.to_bits()))
}

const BODIES: usize = 20_000;
const STEPS: u64 = 40;
const STEP: f64 = 0.001;
/// A cell counts as one body if its side is below this multiple of its distance.
const OPENING: f64 = 1.2;
/// Bounds the pull.
const SOFTENING: f64 = 1e-4;
/// Bodies still together share a leaf.
const DEEPEST: u32 = 40;

type Vector = [f64; 3];

#[derive(Clone, Copy)]
struct Body {
    at: Vector,
    speed: Vector,
    mass: f64,
}

/// Or several in the same place.
struct Leaf {
    at: Vector,
    mass: f64,
}

struct Cell {
    at: Vector,
    mass: f64,
    parts: [Part; 8],
}

#[derive(Default)]
enum Part {
    #[default]
    Empty,
    Leaf(Box<Leaf>),
    Cell(Box<Cell>),
}

#[derive(Clone, Copy)]
struct Cube {
    middle: Vector,
    side: f64,
}

impl Cube {
    fn part(&self, at: Vector) -> (usize, Self) {
        let quarter = self.side / 4.0;
        let mut inner = Self { side: self.side / 2.0, ..*self };
        let mut index = 0;
        for (at, middle) in at.into_iter().zip(&mut inner.middle) {
            let upper = at >= *middle;
            *middle += if upper { quarter } else { -quarter };
            index = index << 1 | usize::from(upper);
        }
        (index, inner)
    }

    fn around(bodies: &[Body]) -> Self {
        let (mut low, mut high) = ([f64::MAX; 3], [f64::MIN; 3]);
        for body in bodies {
            for axis in 0..3 {
                low[axis] = low[axis].min(body.at[axis]);
                high[axis] = high[axis].max(body.at[axis]);
            }
        }
        let middle = std::array::from_fn(|axis| (low[axis] + high[axis]) / 2.0);
        Self { middle, side: (0..3).map(|axis| high[axis] - low[axis]).fold(0.0, f64::max) }
    }
}

impl Cell {
    fn new() -> Box<Self> {
        Box::new(Self { at: [0.0; 3], mass: 0.0, parts: Default::default() })
    }
}

impl Part {
    fn insert(&mut self, leaf: Box<Leaf>, cube: Cube, depth: u32) {
        match self {
            Self::Empty => *self = Self::Leaf(leaf),
            Self::Leaf(there) if depth == DEEPEST => there.mass += leaf.mass,
            Self::Leaf(_) => {
                let mut cell = Cell::new();
                if let Self::Leaf(there) = std::mem::take(self) {
                    let (part, inner) = cube.part(there.at);
                    cell.parts[part].insert(there, inner, depth + 1);
                }
                let (part, inner) = cube.part(leaf.at);
                cell.parts[part].insert(leaf, inner, depth + 1);
                *self = Self::Cell(cell);
            }
            Self::Cell(cell) => {
                let (part, inner) = cube.part(leaf.at);
                cell.parts[part].insert(leaf, inner, depth + 1);
            }
        }
    }

    /// Mass, and centre times mass.
    fn weigh(&mut self) -> (f64, Vector) {
        match self {
            Self::Empty => (0.0, [0.0; 3]),
            Self::Leaf(leaf) => (leaf.mass, leaf.at.map(|x| x * leaf.mass)),
            Self::Cell(cell) => {
                let (mut mass, mut moment) = (0.0, [0.0; 3]);
                for part in &mut cell.parts {
                    let (part_mass, part_moment) = part.weigh();
                    mass += part_mass;
                    (0..3).for_each(|axis| moment[axis] += part_moment[axis]);
                }
                (cell.mass, cell.at) = (mass, moment.map(|x| x / mass));
                (mass, moment)
            }
        }
    }

    fn pull(&self, at: Vector, side: f64, sum: &mut Vector) {
        let (there, mass) = match self {
            Self::Empty => return,
            Self::Leaf(leaf) => (leaf.at, leaf.mass),
            Self::Cell(cell) => (cell.at, cell.mass),
        };
        let apart: Vector = std::array::from_fn(|axis| there[axis] - at[axis]);
        let square = apart[0] * apart[0] + apart[1] * apart[1] + apart[2] * apart[2];
        if let Self::Cell(cell) = self
            && side * side >= OPENING * OPENING * square
        {
            return cell.parts.iter().for_each(|part| part.pull(at, side / 2.0, sum));
        }
        let soft = square + SOFTENING;
        let pull = mass / (soft * soft.sqrt());
        (0..3).for_each(|axis| sum[axis] += apart[axis] * pull);
    }
}

fn tree(bodies: &[Body]) -> (Part, f64) {
    let cube = Cube::around(bodies);
    let mut root = Part::Empty;
    for body in bodies {
        root.insert(Box::new(Leaf { at: body.at, mass: body.mass }), cube, 0);
    }
    root.weigh();
    (root, cube.side)
}

fn step(bodies: &mut [Body]) {
    let (root, side) = tree(bodies);
    for body in bodies {
        let mut pull = [0.0; 3];
        root.pull(body.at, side, &mut pull);
        for (axis, pull) in pull.into_iter().enumerate() {
            body.speed[axis] += pull * STEP;
            body.at[axis] += body.speed[axis] * STEP;
        }
    }
}

/// Of total mass 1; nearer to the middle than at random.
fn bodies(rng: &mut Rng, count: usize) -> Vec<Body> {
    let mut coordinate = || {
        let unit = |bits: u64| (bits >> 11) as f64 / (1u64 << 53) as f64;
        (unit(rng.next()) - 0.5) * unit(rng.next())
    };
    let body = |_| Body { at: std::array::from_fn(|_| coordinate()), speed: [0.0; 3], mass: 1.0 / count as f64 };
    (0..count).map(body).collect()
}

#[cfg(test)]
mod tests;
