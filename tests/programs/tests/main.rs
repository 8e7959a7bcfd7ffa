//! The tests as one program.

mod alien;
mod attacks;
mod background;
mod backing;
mod caches;
mod compilers;
mod conformance;
mod debug;
mod faulty;
mod frames;
mod hardened;
mod interpreters;
mod large;
mod limited;
mod limits;
mod linking;
mod misuse;
mod own;
mod processes;
mod rseq;
mod servers;
mod shells;
mod stacks;
mod support;
mod symbols;
mod threads;
