//! The process's outputs: statistics, traces, the table for readers of its memory, messages.

pub mod inspect;
pub mod json;
pub(crate) mod mailbox;
pub(crate) mod numbered_path;
pub mod profile_file;
pub(crate) mod recording;
pub mod report;
pub mod segment;
pub(crate) mod shared;
pub mod stats;
pub(crate) mod telemetry;
pub mod text;
pub(crate) mod trace;
