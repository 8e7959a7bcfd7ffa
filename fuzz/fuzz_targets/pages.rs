//! The page heap over simulated memory, driven by typed instructions; the floor refuses some calls.
#![no_main]

#[path = "../../crates/pages/tests/all/common/mod.rs"]
mod common;

use common::program::Program;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|program: Program| program.run());
