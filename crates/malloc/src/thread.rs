//! A thread's words, mode, cache, and position in a request.

pub(crate) mod admission;
pub(crate) mod leave;
pub(crate) mod life;
pub(crate) mod mode;
pub(crate) mod nested;
pub(crate) mod registry;
pub(crate) mod tls;
