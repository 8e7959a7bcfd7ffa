//! The typed heap in files, as one program.

mod input;
mod kill;
mod models;
mod sync;
