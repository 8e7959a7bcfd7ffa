//! Operations of several threads, in every order of their steps.
#![cfg(loom)]

mod loom_claim;
mod loom_epoch;
mod loom_lane;
mod loom_medium;
mod loom_world;
