//! Both kinds of caches against naive models.

mod classes;
mod objects;
