//! What the heap reports to the process around it.
//!
//! **What.** The core calls these where limits, the trace, the debugging kit, statistics and reports look in. Every method
//! has a default that does nothing, so that a heap in a test needs no process.
//!
//! **Threads.** Any thread calls them; each method says which locks of the heap the caller holds.

/// What a heap reports. A type without data: calls are resolved at compile time.
pub trait Hooks: 'static {}

/// A heap that nobody watches.
#[derive(Clone, Copy, Debug)]
pub struct NoHooks;

impl Hooks for NoHooks {}
