//! The simulated world under Craton's layers: memory, time, chance and failure, all in the test's hand.
//!
//! **What.** A layer that decides with numbers can be tested without a system: it gets a [`SimFloor`] that keeps only the
//! *state* of memory (which pages exist, have memory, are huge), a [`VirtualClock`] that moves when told, an [`Rng`]
//! that a seed replays, and a [`FaultPlan`] that says which call is refused. Layers that touch objects get a
//! [`RealFloor`] with real bytes, or [`BumpSpans`] when only spans are needed. [`Counted`], [`Checked`] and [`Faulty`]
//! wrap any floor or span source, these or the real ones. [`Lines`] says what a crash can leave of persistent memory.
//!
//! The simulation is also the *checker* of what stands on it: whoever breaks the contract of a seam (a range beyond the
//! grant, a grant that shrinks, a span freed twice) panics at the call that did it, with the values in the message.
//!
//! **Units.** As in `craton-base`: pages of 8 KiB, hugepages of 256 pages, nanoseconds. The simulated machine's
//! small page is Craton's page: nothing above asks the floor for less.
//!
//! **State.** For each hugepage of a [`SimFloor`]'s region:
//! ```text
//! backed   256 bits   the page has memory
//! written  256 bits   the program wrote to the page since it last lost its memory: it need not read as zero
//! huge       1 bit    the memory is one physical hugepage
//! advice   2 × 256    Huge, Small, or neither (as the system decides)
//! ```
//!
//! **Invariants** (walked by [`SimFloor::check`]):
//! - M1 a written page is backed;
//! - M2 a huge hugepage is wholly backed;
//! - M3 beyond the grant nothing is backed, written or huge;
//! - M4 no page has two pieces of advice.
//!
//! **How memory behaves** (after Linux's transparent hugepages):
//! ```text
//! touch     a hugepage without memory, all of it allowed to be huge → all 256 pages backed at once, huge
//!           otherwise → just the touched pages
//! unback    part of a huge one → it is split: no longer huge, the rest stays backed
//! collapse  at least one page backed → wholly backed and huge;   none backed → refused
//! allowed   Always: but where advised Small   Madvise: only where advised Huge   Never: nowhere
//! ```
//! Linux frees the memory of a part of a hugepage only when it gets round to splitting; here it is free at once.
//!
//! **Threads.** Handles ([`SimFloor`], [`RealFloor`], [`FaultPlan`], [`VirtualClock`]) can be cloned and sent: the test
//! keeps one and gives the other away. Calls on one floor are serialised by a lock.
//!
//! **Failure.** [`NoMemory`](craton_base::NoMemory) comes from the fault plan, from the end of the region, and from a
//! collapse of nothing; after it the state is as before. Misuse panics.
//!
//! **Not here.** Policies; the cost of anything in time; several NUMA nodes.

mod checked;
mod clock;
mod counted;
mod fault;
mod faulty;
mod floor;
mod lines;
mod real;
mod rng;
mod spans;
mod system;

pub use checked::Checked;
pub use clock::VirtualClock;
pub use counted::{Counted, Counts};
pub use fault::{Call, FaultPlan, FaultRule, Refusal};
pub use faulty::Faulty;
pub use floor::{FloorCalls, SimFloor, ThpMode};
pub use lines::{LINE_WORDS, Line, Lines};
pub use real::{RealFloor, RealMemory};
pub use rng::Rng;
pub use spans::BumpSpans;
pub use system::SimSystem;
