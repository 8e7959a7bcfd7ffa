//! As the fuzz target, the same every time.

use crate::common::full;
use crate::common::program::Program;
use arbitrary::{Arbitrary, Unstructured};
use craton_sim::Rng;

struct Shown<'a>(u64, &'a Program);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("input {}: {:?}", self.0, self.1);
        }
    }
}

#[test]
fn programs_of_random_bytes_keep_the_invariants() {
    let inputs = if full() { 100_000 } else { 1_500 };
    let mut longest = 0;
    for seed in 0..inputs {
        let mut rng = Rng::new(seed);
        let bytes: Vec<u8> = (0..rng.size(2400)).map(|_| rng.next_u64() as u8).collect();
        let program = Program::arbitrary(&mut Unstructured::new(&bytes)).expect("any bytes are a program");
        longest = longest.max(program.instructions.len());
        let _shown = Shown(seed, &program);
        program.run();
    }
    assert!(longest > 200, "the inputs are too short: {longest} instructions");
}
