//! Scripts in a language with counted values, full of strings, by `rhai`; some results stay.
//!
//! **From.** Zorn and Grunwald's perl and gawk (1992); Detlefs, Dosser and Zorn (1994).

use super::Load;
use craton_lab::rng::{Rng, mix};
use rhai::{Array, Dynamic, Engine, EvalAltResult, Scope};
use std::cell::RefCell;
use std::rc::Rc;

pub fn run(load: &Load) -> u64 {
    let mut machine = Machine::new();
    let mut kept = vec![Dynamic::UNIT; KEPT as usize];
    (0..load.of(ROUNDS)).fold(0, |sum: u64, number| {
        let mut rng = Rng::new(load.seed, number);
        let place = rng.below(KEPT) as usize;
        kept[place] = machine.round(rng, number).unwrap_or_else(|why| why.to_string().into());
        kept[place].to_string().bytes().fold(mix(sum), |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()))
    })
}

const ROUNDS: u64 = 800;
const KEPT: u32 = 300;

/// `main` takes the round's number.
const SCRIPTS: &str = include_str!("interpreter/scripts.rhai");

struct Machine {
    engine: Engine,
    rng: Rc<RefCell<Rng>>,
}

impl Machine {
    fn new() -> Self {
        let rng = Rc::new(RefCell::new(Rng::new(0, 0)));
        let mut engine = Engine::new();
        // Defaults are lower without optimization.
        engine.set_max_call_levels(64).set_max_expr_depths(64, 64);
        let numbers = rng.clone();
        engine.register_fn("rand", move |bound: i64| i64::from(numbers.borrow_mut().below(bound as u32)));
        engine.register_fn("join", |parts: Array, between: &str| {
            parts.iter().map(Dynamic::to_string).collect::<Vec<_>>().join(between)
        });
        Self { engine, rng }
    }

    fn round(&mut self, rng: Rng, number: u64) -> Result<Dynamic, Box<EvalAltResult>> {
        *self.rng.borrow_mut() = rng;
        let program = self.engine.compile(SCRIPTS)?;
        self.engine.call_fn(&mut Scope::new(), &program, "main", (number as i64,))
    }
}

#[cfg(test)]
mod tests;
