//! What others see of the process: numbers, documents, recordings, the table for readers of its memory, and messages.

pub mod inspect;
pub mod json;
pub(crate) mod mailbox;
pub(crate) mod recording;
pub mod report;
pub mod segment;
pub mod stats;
pub mod text;
pub(crate) mod trace;
