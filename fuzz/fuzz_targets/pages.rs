//! The page heap over simulated memory, driven by typed instructions, with the machine's hugepages
//! or tiny ones; the floor refuses some calls.
//!
//! **Failure.** A broken invariant, or a difference to the naive model, panics: libFuzzer keeps the
//! input.
#![no_main]

#[path = "../../crates/pages/tests/all/common/mod.rs"]
mod common;

use common::program::Program;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|program: Program| program.run());
