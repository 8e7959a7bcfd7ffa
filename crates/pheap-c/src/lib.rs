//! The persistent heap for C: `craton_pheap.h` has the contract of each function.
//!
//! **What.** A library apart from `libcraton`: it replaces no `malloc`. A [`handle::Pheap`] is an
//! open heap. Programs name slots and objects by their addresses in the mapping; the heap knows
//! offsets.
//!
//! **Failure.** Each call returns 0 or a [`code::Code`], and keeps a line of text for its thread.
//! After an error heap and arguments are as before. A panic, which only a bug or a damaged file
//! causes, ends inside of the call: the library is built with unwinding. The heap then refuses all
//! calls but `craton_pheap_close`, which leaves repairs to the next opening.
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
