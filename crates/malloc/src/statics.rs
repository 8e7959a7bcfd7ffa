//! The state of the process: every static that changes while it runs.
//!
//! **What.** One value of each part. A part knows nothing of this file: it gets what it needs as an argument, or the front
//! and `govern.rs`, which know both, bind it. Constant tables (`INSPECT`, the entries of `.init_array`) stand where they
//! are made.
//!
//! **State.** All zeros where the size matters (the heap, the per-CPU caches, the area of signal handlers), so that these
//! take no room in the file and no memory before they are used.
//!
//! **Unsafe.** Exports the segment under the name that readers look up.

use crate::govern::background::thread::HelperThread;
use crate::govern::background::{Background, Errands};
use crate::govern::limits::Limits;
use crate::here::Here;
use crate::observe::mailbox::Mailbox;
use crate::observe::segment::Segment;
use crate::observe::trace::{PATH_MAX, Tracer};
use crate::start::page_heap::Choice;
use crate::thread::admission::Admission;
use crate::thread::nested::area::Area;
use crate::thread::registry::Registry;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32};
use craton_heap::Heap;
use craton_heap::cpu_cache::ProcessorCaches;
use craton_heap::size_class::CLASSES;
use craton_heap::thread_cache::NoCaches;
use craton_kit::Kit;
use craton_objects::caches::Caches;
use craton_objects::heaps::Heaps;
use craton_os::{CoarseClock, Linux, Mutex, Rank, Region};

/// The heap, and its type.
pub(crate) type TheHeap = Heap<Region, CoarseClock, Here>;
pub(crate) static HEAP: TheHeap = Heap::new(Region::EMPTY, Linux, CoarseClock, CoarseClock);
/// Heaps and object caches that the program makes, over the same page heap.
pub(crate) static HEAPS: Heaps = Heaps::new();
pub(crate) static OBJECT_CACHES: Caches<CoarseClock, Here> = Caches::new(CoarseClock);
/// The debugging kit.
pub(crate) static KIT: Kit<Here> = Kit::new();

/// Which page heap there is.
pub(crate) static PAGE_HEAP: Choice = Choice::new();

/// The thread caches, and the per-CPU caches of the threads that have none.
pub(crate) static REGISTRY: Mutex<Registry> = Mutex::ranked(Rank::ThreadCaches, Registry::EMPTY);
pub(crate) static PROCESSOR_CACHES: ProcessorCaches = ProcessorCaches::EMPTY;
pub(crate) static ADMISSION: Admission = Admission::new();
/// What the pointers of threads without a cache point at.
pub(crate) static NO_CACHE: NoCaches = NoCaches::new();
/// Requests of each class that got no memory.
pub(crate) static FAILURES: [AtomicU32; CLASSES + 1] = [const { AtomicU32::new(0) }; CLASSES + 1];

/// The heap is set up; who does that; and the key, plus 1, whose value makes a thread's end known.
pub(crate) static READY: AtomicBool = AtomicBool::new(false);
pub(crate) static SETTING_UP: Mutex<()> = Mutex::ranked(Rank::SetUp, ());
pub(crate) static EXIT_KEY: AtomicU32 = AtomicU32::new(0);

/// What the heap does by itself, and its limits.
pub(crate) static BACKGROUND: Background<CoarseClock, HelperThread> = Background::new(CoarseClock, HelperThread::new());
pub(crate) static LIMITS: Limits<CoarseClock, Here> = Limits::new(CoarseClock, Here, &SEGMENT);

/// Chores that files above `govern.rs` do; set when the library is loaded.
pub(crate) static ERRANDS: AtomicPtr<Errands> = AtomicPtr::new(null_mut());

/// The process's numbers, exported for readers of its memory.
#[unsafe(export_name = "craton_segment")]
pub static SEGMENT: Segment = Segment::new();
/// The option `stats`; where statistics go, since programs such as `ls` close standard error before they are printed; and
/// the option `stats_file`, the path with its closing 0 and its length.
pub(crate) static STATS: AtomicBool = AtomicBool::new(false);
pub(crate) static STATS_TO: AtomicI32 = AtomicI32::new(2);
pub(crate) static STATS_FILE: Mutex<([u8; PATH_MAX], usize)> = Mutex::ranked(Rank::StatsFile, ([0; PATH_MAX], 0));

/// Requests of signal handlers that interrupted a request.
pub(crate) static APART: Area = Area::new();
/// Where another process leaves settings. Never constant: that process writes it.
pub(crate) static MAILBOX: Mailbox = Mailbox::empty();
/// The recording of spans.
pub(crate) static TRACE: Tracer = Tracer::new();
/// A list of free objects that lost some was reported.
pub(crate) static LOSS_REPORTED: AtomicBool = AtomicBool::new(false);

/// A request of the debugging kit runs chores, which may allocate.
pub(crate) static KIT_RUNS_CHORES: AtomicBool = AtomicBool::new(false);

/// The keys of the thread's words where these are POSIX thread-specific values, plus 1.
#[cfg(not(all(target_arch = "x86_64", not(feature = "portable"))))]
pub(crate) static TLS_KEYS: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];
