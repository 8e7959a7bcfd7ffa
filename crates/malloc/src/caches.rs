//! Object caches of the process ([`crate::objects::caches`]).

pub mod api;

pub use crate::objects::caches::{
    CacheStats, Constructor, Destructor, Fault, NAME_MAX, NEVER, NO_ARRAYS, NO_COLOURS, NUMBERS, Options, Reclaim,
    Refused, WORKING_SET_MS,
};
