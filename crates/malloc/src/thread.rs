//! What a thread is to the allocator: its words, its mode, its cache, and where it stands in a request.

pub(crate) mod admission;
pub(crate) mod leave;
pub(crate) mod life;
pub(crate) mod mode;
pub(crate) mod nested;
pub(crate) mod registry;
pub(crate) mod tls;
