//! The process's object caches ([`craton_objects::caches`]).

pub mod api;

pub use craton_objects::caches::{
    CacheStats, Constructor, Destructor, Fault, NAME_MAX, NEVER, NO_ARRAYS, NO_COLOURS, Options, Reclaim, Refused,
    WORKING_SET_MS,
};
