//! The page heap over simulated memory, driven by typed instructions; the floor refuses some of its calls.
//!
//! **Failure.** An invariant that does not hold, or a difference to the naive model, is a panic: libFuzzer keeps the input.
#![no_main]

#[path = "../../crates/pages/tests/common/mod.rs"]
mod common;

use common::program::Program;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|program: Program| program.run());
