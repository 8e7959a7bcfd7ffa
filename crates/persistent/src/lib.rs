//! A heap that survives, for Rust programs.
//!
//! [`PersistentHeap`] is craton-pheap in a file or on a device, with types: roots by name,
//! relocatable pointers ([`PPtr`]), values made by [`persist!`].
//!
//! **From.** NVAlloc §4.1; typed pointers and roots as in PMDK.
//! **Threads.** Words are atomic; longer values need a lock of the program's, as do two changes of
//! one slot.
//! **Failure.** [`Error`]; heap and file are as before. A damaged offset that the heap follows
//! panics before it reads beyond the file, which never becomes shorter while it is open.
//! **Not here.** References into the heap: a freed object or a damaged file would make them
//! unsound.
#![forbid(unsafe_code)]

mod array;
mod batch;
mod error;
mod file;
mod heap;
mod media;
mod options;
mod persist;
mod pointer;
pub mod raw;
#[doc(hidden)]
pub mod record;
mod reserved;
mod transaction;

pub use batch::Batch;
pub use craton_base::Promise;
pub use craton_os::persistent_file::FileError;
pub use craton_pheap::{Error as HeapError, Model, Report, Root, Stats};
pub use error::Error;
pub use heap::PersistentHeap;
pub use options::{Durability, HeapOptions};
#[doc(hidden)]
pub use persist::{HASH, hash};
pub use persist::{Object, Persist};
pub use pointer::{PPtr, Slot};
pub use record::Field;
#[doc(hidden)]
pub use record::Layout;
pub use reserved::Reserved;
pub use transaction::Transaction;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/pheap-guide.md")]
mod guide {}
