//! The tests of the persistent heap, as one program.
