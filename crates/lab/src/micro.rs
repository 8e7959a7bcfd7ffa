//! Micro measurements (the driver follows).
pub(crate) mod calls;
pub(crate) mod loops;
pub mod measurement;
pub mod pattern;
