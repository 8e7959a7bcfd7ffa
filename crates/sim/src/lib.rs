//! The simulated world under Craton's layers: memory, time, chance and failure, set by the test.
//!
//! **What.** Layers that only decide get a [`SimFloor`], the *state* of memory without bytes;
//! layers that touch objects a [`RealFloor`], or [`BumpSpans`]. [`Checked`] and [`Faulty`] wrap
//! any. A broken contract panics in the offending call.
//!
//! **State.** For each hugepage of a [`SimFloor`]:
//! ```text
//! backed   256 bits   the page has memory
//! written  256 bits   the program wrote to the page since it last lost its memory
//! huge       1 bit    the memory is one physical hugepage
//! advice   2 × 256    Huge, Small, or neither (as the system decides)
//! framed   256 bits   the page lies in the hugepage's own physical frame
//! shared   256 bits   a forked child has the page's memory too
//! ```
//! **Invariants** (walked by [`SimFloor::check`]): *Z1* a written page is backed; *Z2* a huge
//! hugepage is wholly backed; *Z3* beyond the grant nothing is backed, written or huge; *Z4* no
//! page has two pieces of advice; *Z5* framed and shared pages are backed, and all of a huge
//! hugepage is framed.
//!
//! **How memory behaves** (after Linux's transparent hugepages):
//! ```text
//! touch     a hugepage without memory, all of it allowed to be huge, and a free frame → all 256
//!           pages backed, huge;   otherwise → just the touched pages
//! unback    part of a huge one → split: no longer huge, the rest stays backed (Linux frees later)
//! collapse  at least one page backed, and a free frame → wholly backed and huge
//!           none backed, no frame, shared with a child → refused
//! fork      all backed pages shared;   write to a shared one → a copy outside of the frame, split
//! frame     free again with the last page that lies in it, and the child
//! allowed   Always: but where advised Small   Madvise: only where advised Huge   Never: nowhere
//! ```
//! **Not here.** Costs in time; several NUMA nodes.

mod checked;
mod clock;
mod fault;
mod faulty;
mod floor;
mod frames;
mod lines;
#[cfg(not(loom))]
mod persistent;
mod real;
mod rng;
mod spans;
mod system;

pub use checked::Checked;
pub use clock::VirtualClock;
pub use fault::{Call, FaultPlan, FaultRule, Refusal};
pub use faulty::Faulty;
pub use floor::{FloorCalls, SimFloor, ThpMode};
pub use lines::{LINE_WORDS, Line, Lines};
#[cfg(not(loom))]
pub use persistent::{
    Counted, Counters, Event, Fallible, Image, Images, Latency, Moment, REFLUSH_DISTANCES, SimCached, SimMedium,
    SimPersistent,
};
pub use real::{RealFloor, RealMemory};
pub use rng::Rng;
pub use spans::BumpSpans;
pub use system::SimSystem;
