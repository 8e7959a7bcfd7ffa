//! The tests as one program.

mod common;
mod compare;
mod core;
mod core_copy;
mod core_kit;
mod dashboard;
mod documents;
mod heap;
mod input;
mod interrupts;
mod live;
mod probes;
mod profile;
mod recipes;
mod replay;
mod reports;
mod run;
mod serve;
mod terminals;
mod usage;
