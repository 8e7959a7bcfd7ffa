//! The tree and the server.

mod crash;
mod heap;
mod kill;
mod memory;
mod model;
mod process;
mod random;
mod redis;
mod server;
mod threads;
mod usage;
