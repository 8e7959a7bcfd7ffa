//! The persistent heap for C: `craton_pheap.h` has the contract of each function.
//!
//! Programs name slots and objects by addresses in the mapping; the heap knows offsets.
//!
//! **Failure.** Each call returns 0 or a [`code::Code`], and keeps a line of text for its thread.
//! After a panic, from a bug or a damaged file, the heap refuses all calls but
//! `craton_pheap_close`.
//!
//! **Threads.** As [`RawHeap`](craton_persistent::raw::RawHeap). **Unsafe.** Takes pointers and
//! functions from C.

mod batch;
mod call;
mod code;
mod handle;
mod heap;
mod object;
mod report;
mod reserve;
mod root;
mod transaction;

#[cfg(test)]
mod tests;
