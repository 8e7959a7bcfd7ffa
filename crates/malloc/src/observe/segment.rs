//! The segment: a page of live statistics, exported as `craton_segment`. The table in
//! `craton_tables` generates the layout. [`Rest`] is for readers of a file
//! ([`crate::observe::shared`]).
//!
//! **State.**
//! ```text
//! 0: magic · version · a word for each number · zeros | 1024: Rest · zeros | 4096
//! ```
//!
//! **Unsafe.** Exports it under a fixed name.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use craton_heap::size_class::CLASSES;
use craton_os::shared_page;
use craton_tables::counters;
use craton_tables::counters::{CACHE_MODES, LIMIT_SOURCES, PROCESS, word};
use craton_tables::options::{Key, OPTIONS};

/// Little-endian.
pub const MAGIC: u64 = u64::from_le_bytes(*b"\0CRATON1");
pub const VERSION: u64 = 1;

macro_rules! segment {
    ($($name:ident: $unit:ident, $text:literal;)*) => {
        #[repr(C, align(4096))]
        #[derive(Debug)]
        pub struct Segment {
            magic: AtomicU64,
            version: AtomicU64,
            $(#[doc = $text] pub $name: AtomicU64,)*
            room: [u64; REST_AT / 8 - WORDS],
            pub(crate) rest: Rest,
        }

        impl Segment {
            pub const fn new() -> Self {
                Self {
                    magic: AtomicU64::new(MAGIC),
                    version: AtomicU64::new(VERSION),
                    $($name: AtomicU64::new(0),)*
                    room: [0; REST_AT / 8 - WORDS],
                    rest: Rest::NONE,
                }
            }

            pub fn numbers(&self) -> [(&'static str, u64); WORDS - 2] {
                [$((stringify!($name), self.$name.load(Relaxed))),*]
            }
        }
    };
}

counters!(process, segment);

pub const WORDS: usize = 2 + PROCESS.len();
/// Fixed, for readers of another release.
const REST_AT: usize = 1024;

const _: () = assert!(size_of::<Segment>() == shared_page::BYTES && align_of::<Segment>() == shared_page::BYTES);

#[repr(C)]
#[derive(Debug)]
pub(crate) struct Rest {
    /// [`WORDS`] of this release.
    words: AtomicU64,
    pub(crate) state: AtomicU64,
    /// By the monotonic clock: the load; in a fork's child, when it got its file.
    pub(crate) since_ns: AtomicU64,
    exe: [AtomicU64; 2],
    class_count: AtomicU32,
    option_count: AtomicU32,
    classes: [ClassShare; CLASSES],
    /// As set since the start; empty for the default. Ends by 0 unless cut.
    options: [[AtomicU32; VALUE_MOST / 4]; OPTIONS.len()],
}

/// As last published.
#[repr(C)]
#[derive(Debug)]
struct ClassShare {
    object_bytes: AtomicU32,
    slab_bytes: AtomicU32,
    slabs: AtomicU32,
    objects_out: AtomicU32,
}

const VALUE_MOST: usize = 36;

/// Of [`Rest::state`].
pub(crate) const RUNS: u64 = 1;
pub(crate) const EXITED: u64 = 2;

impl Rest {
    #[allow(clippy::declare_interior_mutable_const)] // A value to begin with: every use of it is a new one.
    const NONE: Self = Self {
        words: AtomicU64::new(0),
        state: AtomicU64::new(0),
        since_ns: AtomicU64::new(0),
        exe: [const { AtomicU64::new(0) }; 2],
        class_count: AtomicU32::new(0),
        option_count: AtomicU32::new(0),
        classes: [const { ClassShare::NONE }; CLASSES],
        options: [const { [const { AtomicU32::new(0) }; VALUE_MOST / 4] }; OPTIONS.len()],
    };

    pub(crate) fn begin(&self, exe: [u8; 16], now_ns: u64) {
        self.words.store(WORDS as u64, Relaxed);
        self.class_count.store(CLASSES as u32, Relaxed);
        self.option_count.store(OPTIONS.len() as u32, Relaxed);
        self.since_ns.store(now_ns, Relaxed);
        let (words, _) = exe.as_chunks::<8>();
        self.exe.iter().zip(words).for_each(|(place, word)| place.store(u64::from_le_bytes(*word), Relaxed));
        self.state.store(RUNS, Relaxed);
    }

    pub(crate) fn publish(&self, class: usize, object_bytes: u32, slab_bytes: u32, slabs: u32, objects_out: u64) {
        let share = &self.classes[class - 1];
        share.object_bytes.store(object_bytes, Relaxed);
        share.slab_bytes.store(slab_bytes, Relaxed);
        share.slabs.store(slabs, Relaxed);
        share.objects_out.store(u32::try_from(objects_out).unwrap_or(u32::MAX), Relaxed);
    }

    pub(crate) fn record_option(&self, key: Key, value: &[u8]) {
        let mut text = [0; VALUE_MOST];
        let len = value.len().min(VALUE_MOST);
        text[..len].copy_from_slice(&value[..len]);
        let (words, _) = text.as_chunks::<4>();
        let places = &self.options[key as usize];
        places.iter().zip(words).for_each(|(place, word)| place.store(u32::from_le_bytes(*word), Relaxed));
    }
}

impl ClassShare {
    #[allow(clippy::declare_interior_mutable_const)] // As above.
    const NONE: Self = Self {
        object_bytes: AtomicU32::new(0),
        slab_bytes: AtomicU32::new(0),
        slabs: AtomicU32::new(0),
        objects_out: AtomicU32::new(0),
    };
}

impl Segment {
    /// In the order of `struct craton_segment`.
    pub fn words(&self) -> [u64; WORDS] {
        let mut words = [MAGIC; WORDS];
        words[1] = VERSION;
        for (word, (_, value)) in words[2..].iter_mut().zip(self.numbers()) {
            *word = value;
        }
        words
    }

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
