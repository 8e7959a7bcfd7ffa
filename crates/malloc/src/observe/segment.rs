//! The segment: a page of live statistics, exported as `craton_segment`. A tool that may read the
//! process's memory finds it by the symbol table. `struct craton_segment` of `craton.h` and this
//! layout come from the table in `craton_tables`.
//!
//! **Unsafe.** Exports it under a fixed name.
//!
//! **Threads.** Each number is exact; two may be a moment apart.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use craton_tables::counters;
use craton_tables::counters::{CACHE_MODES, LIMIT_SOURCES, PROCESS, word};

/// First word: "\0CRATON1", little-endian.
pub const MAGIC: u64 = u64::from_le_bytes(*b"\0CRATON1");
pub const VERSION: u64 = 1;

/// A number for each row of the table.
macro_rules! segment {
    ($($name:ident: $unit:ident, $text:literal;)*) => {
        #[repr(C, align(4096))]
        #[derive(Debug)]
        pub struct Segment {
            magic: AtomicU64,
            version: AtomicU64,
            $(#[doc = $text] pub $name: AtomicU64,)*
        }

        impl Segment {
            pub const fn new() -> Self {
                Self {
                    magic: AtomicU64::new(MAGIC),
                    version: AtomicU64::new(VERSION),
                    $($name: AtomicU64::new(0),)*
                }
            }

            /// The words by name, without magic and version.
            pub fn numbers(&self) -> [(&'static str, u64); WORDS - 2] {
                [$((stringify!($name), self.$name.load(Relaxed))),*]
            }
        }
    };
}

counters!(process, segment);

pub const WORDS: usize = 2 + PROCESS.len();

impl Segment {
    /// The words in the order of `struct craton_segment`.
    pub fn words(&self) -> [u64; WORDS] {
        let mut words = [MAGIC; WORDS];
        words[1] = VERSION;
        for (word, (_, value)) in words[2..].iter_mut().zip(self.numbers()) {
            *word = value;
        }
        words
    }

    /// Since the library's load fork handlers are registered, options known.
    pub(crate) fn has_started(&self) -> bool {
        self.pid.load(Relaxed) != 0
    }

    pub(crate) fn names(&self, page_heap: &'static str) -> [(&'static str, &'static str); 3] {
        [
            ("cache_mode_name", word(CACHE_MODES, self.cache_mode.load(Relaxed))),
            ("memory_limit_source_name", word(LIMIT_SOURCES, self.memory_limit_source.load(Relaxed))),
            ("page_heap", page_heap),
        ]
    }
}

pub(crate) fn add(number: &AtomicU64, n: u64) -> u64 {
    number.fetch_add(n, Relaxed)
}

#[cfg(all(test, not(loom)))]
mod tests;
