//! The process's mutable statics, one value of each part. Parts do not know this file; `front` and
//! `govern.rs` bind them. Constant tables (`INSPECT`, `.init_array`) stand where made.
//!
//! **State.** All zeros where size matters (heap, per-CPU caches, handlers' area): no room in the
//! file, no memory before use.
//!
//! **Unsafe.** Exports the segment under the name that readers look up.

use crate::govern::background::thread::HelperThread;
use crate::govern::background::{Background, Errands};
use crate::govern::limits::Limits;
use crate::here::Here;
use crate::observe::mailbox::Mailbox;
use crate::observe::numbered_path::NumberedPath;
use crate::observe::segment::Segment;
use crate::observe::shared::Shared;
use crate::observe::trace::{PATH_MAX, Tracer};
use crate::profile::Profile;
use crate::start::hardening::Hardening;
use crate::start::page_heap::Choice;
use crate::thread::admission::Admission;
use crate::thread::nested::area::Area;
use crate::thread::registry::Registry;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU32};
use craton_heap::Heap;
use craton_heap::cpu_cache::ProcessorCaches;
use craton_heap::lent::Lent;
use craton_heap::size_class::CLASSES;
use craton_heap::thread_cache::NoCaches;
use craton_kit::Kit;
use craton_objects::caches::Caches;
use craton_objects::heaps::Heaps;
use craton_os::{CoarseClock, Linux, Mutex, Rank, Region};

pub(crate) type TheHeap = Heap<Region, CoarseClock, Here>;
pub(crate) static HEAP: TheHeap = Heap::new(Region::EMPTY, Linux, CoarseClock, CoarseClock);
pub(crate) static HEAPS: Heaps = Heaps::new();
pub(crate) static OBJECT_CACHES: Caches<CoarseClock, Here> = Caches::new(CoarseClock);
pub(crate) static KIT: Kit<Here> = Kit::new();

pub(crate) static PAGE_HEAP: Choice = Choice::new();
pub(crate) static HARDENING: Hardening = Hardening::new();

pub(crate) static REGISTRY: Mutex<Registry> = Mutex::ranked(Rank::ThreadCaches, Registry::EMPTY);
pub(crate) static PROCESSOR_CACHES: ProcessorCaches = ProcessorCaches::EMPTY;
pub(crate) static ADMISSION: Admission = Admission::new();
pub(crate) static NO_CACHE: NoCaches = NoCaches::new();
pub(crate) static FAILURES: [AtomicU32; CLASSES + 1] = [const { AtomicU32::new(0) }; CLASSES + 1];
pub(crate) static LENT: Lent = Lent::new();

/// Whether the heap is set up; the set-up's lock; the thread-exit key plus 1.
pub(crate) static READY: AtomicBool = AtomicBool::new(false);
pub(crate) static SETTING_UP: Mutex<()> = Mutex::ranked(Rank::SetUp, ());
/// Forks in progress in the locks' thread, changed under all locks: a signal handler may fork
/// during one.
pub(crate) static FORKS: AtomicU32 = AtomicU32::new(0);
pub(crate) static EXIT_KEY: AtomicU32 = AtomicU32::new(0);

pub(crate) static BEGUN: AtomicU8 = AtomicU8::new(0);

pub(crate) static BACKGROUND: Background<CoarseClock, HelperThread> = Background::new(CoarseClock, HelperThread::new());
pub(crate) static LIMITS: Limits<CoarseClock, Here> = Limits::new(CoarseClock, Here, &SEGMENT);

/// Of files above `govern.rs`; set at load.
pub(crate) static ERRANDS: AtomicPtr<Errands> = AtomicPtr::new(null_mut());

#[unsafe(export_name = "craton_segment")]
pub static SEGMENT: Segment = Segment::new();
pub(crate) static SHARED: Shared = Shared::new();
/// The option `stats`; its file descriptor (`ls` and others close standard error early); the option
/// `stats_file`: path with closing 0, and length.
pub(crate) static STATS: AtomicBool = AtomicBool::new(false);
pub(crate) static STATS_TO: AtomicI32 = AtomicI32::new(2);
pub(crate) static STATS_FILE: Mutex<([u8; PATH_MAX], usize)> = Mutex::ranked(Rank::StatsFile, ([0; PATH_MAX], 0));

pub(crate) static APART: Area = Area::new();
/// Not constant: another process writes it.
pub(crate) static MAILBOX: Mailbox = Mailbox::empty();
pub(crate) static TRACE: Tracer = Tracer::new();

pub(crate) static PROFILE: Profile = Profile::new();
pub(crate) static PROFILE_FILE: NumberedPath = NumberedPath::new(Rank::ProfilePath);
pub(crate) static DEBUG_FILE: NumberedPath = NumberedPath::new(Rank::ReportsPath);

/// Chores may allocate.
pub(crate) static KIT_RUNS_CHORES: AtomicBool = AtomicBool::new(false);

/// Keys plus 1 of thread-local words as POSIX thread-specific values.
#[cfg(not(all(target_arch = "x86_64", not(feature = "portable"))))]
pub(crate) static TLS_KEYS: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];

/// A thread's countdown before its first request: less than half of it after any.
pub(crate) const NOT_BEGUN: i64 = -1 << 62;

/// Bytes up to the end of a part, for threads without a cache.
#[cfg(not(all(target_arch = "x86_64", not(feature = "portable"))))]
pub(crate) static TLS_COUNTDOWN: core::sync::atomic::AtomicI64 = core::sync::atomic::AtomicI64::new(NOT_BEGUN);
