//! Scripts in a small language, full of strings.
//!
//! **What.** A program text is parsed into a tree and run, again in each round: it counts words, groups records, turns
//! strings around, builds and walks trees, and fills in letters. Values are counted references to strings, lists and
//! tables; every call has a frame on the heap. Some results stay until a later one takes their place.
//!
//! **From.** The interpreters that allocation studies have measured since Zorn and Grunwald's perl and gawk (1992), such as
//! Detlefs, Dosser and Zorn, "Memory allocation costs in large C and C++ programs" (1994). The language is ours.
//!
//! **Units.** Rounds: one script each, of random size.
//!
//! **Failure.** A script that fails changes the checksum: that is what memory that was overwritten would do.

mod ops;
mod parse;
mod run;
mod value;

use super::Workload;
use craton_lab::rng::{Rng, mix};
use parse::Program;
use run::Machine;
use value::Value;

/// The workload, in the list.
pub const WORKLOAD: Workload = Workload {
    name: "interpreter",
    about: "scripts with counted strings, lists and tables: split, count, sort, join, replace",
    from: "Zorn and Grunwald 1992 (perl, gawk), Detlefs et al. 1994",
    threads: 1,
    run: |load| {
        let kept = Value::table();
        let rounds = (0..load.of(ROUNDS)).map(|number| {
            let digest = round(Rng::new(load.seed, number), number, &kept).map(|value| value.digest());
            digest.unwrap_or_else(|why| mix(why.len() as u64))
        });
        let sum = rounds.fold(0, |sum: u64, digest| sum.wrapping_mul(31).wrapping_add(digest));
        sum.wrapping_add(kept.digest())
    },
    known: [0xe2ae_ccaa_ee27_fcbc, 0x6fb8_f7bc_b489_a325],
};

/// Rounds of the full load.
const ROUNDS: u64 = 4000;

/// The program. Its function `main` takes the number of the round and the table of what is kept.
const SCRIPTS: &str = include_str!("interpreter/scripts.lisp");

/// Parses the program and runs it once.
fn round(rng: Rng, number: u64, kept: &Value) -> Result<Value, String> {
    let program = Program::new(SCRIPTS)?;
    let main = program.find("main").ok_or("the program has no main")?;
    Machine::new(&program, rng).call(main, vec![Value::Int(number as i64), kept.clone()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_runs_and_keeps_its_result() {
        let kept = Value::table();
        for number in 0..20 {
            let value = round(Rng::new(1, number), number, &kept).unwrap_or_else(|why| panic!("{number}: {why}"));
            assert!(matches!(value, Value::Str(_) | Value::List(_)), "{number}: {value:?}");
        }
        let Value::Table(kept) = kept else { panic!("a table stays one") };
        assert!((15..=20).contains(&kept.borrow().len()));
    }
}
