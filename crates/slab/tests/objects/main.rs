//! Slabs of objects against a naive model: random, refused by their supplier at every request, and every short sequence.

mod model;
mod refused;
mod small;
mod suppliers;
mod world;
