//! The empirical driver (docs/empirical.md): [`process`] turns a [`profile`] into events, [`real`]
//! plays them through malloc, [`sim`] on the page heap in simulated memory; [`spans`] makes a
//! profile of page-heap requests.

mod alias;
mod object;
pub mod options;
pub(crate) mod process;
pub(crate) mod profile;
pub mod real;
pub(crate) mod schedule;
pub mod sim;
mod slabs;
pub(crate) mod spans;
pub mod system;

use crate::work::Load;
use profile::Profile;
use schedule::Schedule;

pub const REMOTE_PERCENT: u32 = 10;
pub const HEAP_BYTES: u64 = 64 << 20;
pub const EVENTS: u64 = 6_000_000;

pub const NAME: &str = "empirical";

pub(crate) fn run(load: &Load) -> u64 {
    let config = real::Config {
        profile: Profile::built_in(),
        heap_bytes: HEAP_BYTES,
        events: load.of(EVENTS),
        schedule: Schedule::Steady,
        threads: load.threads,
        remote_percent: REMOTE_PERCENT,
        seed: load.seed,
    };
    real::run(&config).expect("the built-in profile fits the heap of as many threads as there can be").checksum
}
