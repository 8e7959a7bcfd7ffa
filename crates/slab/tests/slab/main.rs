//! Caches of both kinds against naive models: random, refused by their source at every request, and
//! every short sequence.

mod classes;
mod objects;
