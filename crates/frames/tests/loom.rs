#![cfg(loom)]

#[allow(dead_code, reason = "the model's part is not used here")]
mod common;
mod loom_pairs;
mod loom_persistent;
mod loom_twice;
mod loom_zone;
