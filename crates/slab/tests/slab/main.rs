//! Both kinds of caches against naive models: random, refused at every request, and every short
//! sequence.

mod classes;
mod objects;
