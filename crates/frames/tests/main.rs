#![cfg(not(loom))]

mod beyond;
mod common;
mod model;
mod persistent;
mod small;
mod twice;
