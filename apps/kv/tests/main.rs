//! The tree and the server, from outside.

mod crash;
mod heap;
mod memory;
mod model;
mod random;
mod server;
mod threads;
