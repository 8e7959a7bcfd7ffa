//! The process's heap: malloc and its kin over one heap, with a cache for each thread.
//!
//! **What.** What C, C++ and Rust call, before their own rules about names and errors. Null means no memory, with
//! `errno` set; a bad pointer is an [`Misuse`](crate::route::Misuse) for the caller to report.
//!
//! **Cost.** malloc: 16 instructions when the thread's cache has an object; free: 24 when it has room.
//!
//! **Unsafe.** Keeps a pointer to a cache for each thread, and takes objects from callers.

mod apart;
pub(crate) mod forks;
mod resize;
mod setting_up;
mod threads;

use crate::cpu_cache::processor::ProcessorCaches;
use crate::cpu_cache::thread::{MAX_QUICK, ThreadCache};
use crate::heap::Heap;
use crate::hooks::NoHooks;
use crate::registry::Registry;
use crate::report::Call;
use crate::route::{Found, Misuse};
use crate::segment::{self, SEGMENT};
use crate::size_class::{self, CLASSES, MAX_CLASSED};
use crate::{background, debug, limits, nested, options, tls, trace};
use core::ffi::c_void;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicUsize, Ordering};
use craton_base::PAGE_SIZE;
use craton_os::rseq::Rseq;
use craton_os::thread::{self, Key};
use craton_os::{CoarseClock, Mutex, Region, cpus, process};

pub(crate) use apart::free_what_waits;
use apart::{free_apart, malloc_apart, malloc_apart_class};
pub use forks::{after_clone, before_clone};
pub use resize::realloc;
pub(crate) use setting_up::set_up;
pub(crate) use threads::fail_caches;
use threads::{give_cache_up, new_cache, visits};

pub(crate) static HEAP: Heap<Region, CoarseClock, NoHooks> = Heap::new(Region::EMPTY, CoarseClock);
static CACHES: Mutex<Registry> = Mutex::new(Registry::EMPTY);
pub(crate) static PROCESSOR_CACHES: ProcessorCaches = ProcessorCaches::EMPTY;
/// Where the list of all threads' caches is, for those who read the memory of another process.
pub(crate) const ALL_CACHES: *const u8 =
    (&raw const CACHES).cast::<u8>().wrapping_add(Mutex::<Registry>::SHAPE[1] + Registry::FIRST);
/// Which threads have caches of their own: an option.
pub(crate) static CACHES_FOR: AtomicU8 = AtomicU8::new(CachesFor::Auto as u8);
/// Threads that have one, and how many may by the option's default: so many for each processor, and so many in any case.
static OWN_CACHES: AtomicUsize = AtomicUsize::new(0);
static MOST_CACHES: AtomicUsize = AtomicUsize::new(LEAST_CACHES);
const CACHES_PER_PROCESSOR: usize = 4;
const LEAST_CACHES: usize = 16;
/// Requests of a thread that processors' caches serve before it gets a cache of its own.
const USES_WITHOUT: u64 = 256;

/// The option `caches`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum CachesFor {
    /// The first thread, and busy ones while they are few.
    Auto,
    /// Every thread.
    Threads,
    /// None: processors have them.
    Processors,
}

static READY: AtomicBool = AtomicBool::new(false);
static SETTING_UP: Mutex<()> = Mutex::new(());
/// The key whose value makes [`thread_ends`] run, plus 1.
static EXIT_KEY: AtomicU32 = AtomicU32::new(0);

/// Bytes that one thread's cache may hold, at the most; an option.
pub(crate) static THREAD_CACHE_BYTES: AtomicUsize = AtomicUsize::new(2 << 20);
/// Bytes that all threads' caches together may grow to before each gets less.
const ALL_CACHES_BYTES: usize = 32 << 20;
/// What a thread's cache gets in any case.
pub(crate) const LEAST_CACHE_BYTES: usize = 256 << 10;

/// Objects larger than this cannot exist (C11 6.5.6: differences of pointers must fit).
const MAX_SIZE: usize = isize::MAX as usize;

/// Largest object that `calloc` takes from the thread's cache and clears itself.
const MAX_CLEARED: usize = 32 << 10;

/// `size` bytes, aligned to 16.
#[inline(always)]
pub fn malloc(size: usize) -> *mut u8 {
    if size <= MAX_QUICK {
        // SAFETY: the pointer is this thread's cache or the one that nobody uses; the size was looked at.
        let object = unsafe { ThreadCache::pop_quick(tls::get(), size) };
        if !object.is_null() {
            return object;
        }
        return malloc_quick(size);
    }
    malloc_beyond_quick(size)
}

#[cold]
#[inline(never)]
fn malloc_quick(size: usize) -> *mut u8 {
    match debug::alloc(size, 1) {
        Some(buffer) => buffer,
        None => malloc_class(size_class::class_of_tabled(size)),
    }
}

#[inline(never)]
fn malloc_beyond_quick(size: usize) -> *mut u8 {
    if size > MAX_CLASSED {
        return malloc_large(size, 1, false);
    }
    let class = size_class::class_of(size);
    // SAFETY: as in `malloc`.
    let object = unsafe { ThreadCache::pop(tls::get(), class) };
    if object.is_null() { malloc_sized(class, size, 1) } else { object }
}

/// An object of so many bytes, of a class that the thread's cache does not hold.
#[cold]
#[inline(never)]
fn malloc_sized(class: usize, size: usize, align: usize) -> *mut u8 {
    debug::alloc(size, align).unwrap_or_else(|| malloc_class(class))
}

/// An object of a class that the thread's cache does not hold.
#[cold]
#[inline(never)]
fn malloc_class(class: usize) -> *mut u8 {
    if let Some(rseq) = without_cache() {
        return malloc_on_processor(rseq, class);
    }
    if nested::is_nested() {
        return malloc_apart_class(class);
    }
    let saved = process::errno();
    let object = match own_cache() {
        // SAFETY: it is this thread's cache. Setting it up can have filled the list: then it is not empty.
        Some(cache) => unsafe {
            let object = ThreadCache::pop(cache, class);
            if object.is_null() { or_with_room(|| HEAP.refill(cache, class)) } else { object }
        },
        None if set_up() => nested::within(|| HEAP.take_one(class)),
        None => null_mut(),
    };
    if object.is_null() {
        count_failure(class);
    }
    background::poke();
    with_errno(object, saved)
}

/// Requests of each class that got nothing.
static FAILURES: [AtomicU32; CLASSES + 1] = [const { AtomicU32::new(0) }; CLASSES + 1];

#[cold]
fn count_failure(class: usize) {
    FAILURES[class].fetch_add(1, Ordering::Relaxed);
    limits::count_refusal(limits::slab_bytes(class));
}

/// How many requests of a class got nothing, modulo 2³².
pub(crate) fn class_failures(class: usize) -> u32 {
    FAILURES[class].load(Ordering::Relaxed)
}

/// What a refill gives; the second time, if a limit kept the first from giving anything and room could be made.
fn or_with_room(refill: impl Fn() -> *mut u8) -> *mut u8 {
    let object = nested::within(&refill);
    if object.is_null() && nested::within(limits::make_room) { nested::within(&refill) } else { object }
}

/// The means by which the calling thread uses its processor's cache, if it is to do so in this request.
#[inline]
fn without_cache() -> Option<&'static Rseq> {
    let cache = tls::get();
    if cache != tls::visitor() && cache != tls::gone() {
        return if cache == tls::none() { visits() } else { None };
    }
    let rseq = PROCESSOR_CACHES.rseq()?;
    (cache == tls::gone() || !earns_cache()).then_some(rseq)
}

/// Whether a thread without a cache is to get one now.
#[inline]
fn earns_cache() -> bool {
    let caches = OWN_CACHES.load(Ordering::Relaxed);
    match CACHES_FOR.load(Ordering::Relaxed) {
        0 if caches == 0 => true,
        0 => tls::count_use() >= USES_WITHOUT && caches < MOST_CACHES.load(Ordering::Relaxed),
        mode => mode == CachesFor::Threads as u8,
    }
}

/// Prepares for threads besides the first, before they take anything; the lock on the caches keeps a fork out.
fn prepare_for_threads(_caches: &Registry) {
    let processors = cpus::known();
    MOST_CACHES.store((CACHES_PER_PROCESSOR * processors).max(LEAST_CACHES), Ordering::Relaxed);
    HEAP.use_shards(processors);
}

fn malloc_on_processor(rseq: &Rseq, class: usize) -> *mut u8 {
    let object = PROCESSOR_CACHES.pop(rseq, class);
    if !object.is_null() {
        HEAP.wipe_mark(object)
    } else if nested::is_nested() {
        malloc_apart_class(class)
    } else {
        malloc_for_processor(rseq, class)
    }
}

#[inline(never)]
fn malloc_for_processor(rseq: &Rseq, class: usize) -> *mut u8 {
    let saved = process::errno();
    note_threads();
    let object = or_with_room(|| PROCESSOR_CACHES.refill(&HEAP, rseq, class));
    if object.is_null() {
        count_failure(class);
    }
    let object = HEAP.wipe_mark(object);
    background::poke();
    with_errno(object, saved)
}

/// Notes that there are threads besides those that have caches, when the first of them asks for anything.
fn note_threads() {
    if !PROCESSOR_CACHES.in_use() {
        nested::within(|| {
            let caches = CACHES.lock();
            prepare_for_threads(&caches);
            background::count_threads(caches.taken() + 1);
        });
    }
}

/// Frees an object into this processor's cache; `false` when it is none that could go there.
///
/// # Safety
/// As [`free`].
unsafe fn free_on_processor(rseq: &Rseq, pointer: *mut u8) -> bool {
    let Some(class) = HEAP.recognise(pointer) else { return false };
    // SAFETY: the object is one of the class, out, and given up.
    unsafe {
        HEAP.set_mark(pointer);
        if PROCESSOR_CACHES.push(rseq, class, pointer) {
            background::look_in_free();
        } else {
            if nested::is_nested() {
                free_apart(HEAP.wipe_mark(pointer));
                return true;
            }
            let saved = process::errno();
            note_threads();
            nested::within(|| PROCESSOR_CACHES.overflow(&HEAP, rseq, class, pointer));
            background::poke_in_free();
            process::set_errno(saved);
        }
    }
    true
}

#[inline(never)]
fn malloc_large(size: usize, align: usize, zero: bool) -> *mut u8 {
    let at_hand = if zero || align > PAGE_SIZE { null_mut() } else { HEAP.large_at_hand(size) };
    if at_hand.is_null() { malloc_large_anew(size, align, zero) } else { at_hand }
}

#[cold]
fn malloc_large_anew(size: usize, align: usize, zero: bool) -> *mut u8 {
    if nested::is_nested() {
        return malloc_apart(size, align);
    }
    if let Some(buffer) = debug::alloc(size, align) {
        if zero && !buffer.is_null() {
            // SAFETY: the buffer holds `size` bytes and is ours until we return it.
            unsafe { buffer.write_bytes(0, size) };
        }
        return buffer;
    }
    let saved = process::errno();
    let possible = size <= MAX_SIZE && set_up();
    let allocate = || nested::within(|| HEAP.allocate_large(size, align, zero));
    let mut object = if possible { allocate() } else { null_mut() };
    if object.is_null() && possible {
        if nested::within(limits::make_room) {
            object = allocate();
        }
        if object.is_null() {
            limits::count_refusal(size);
        }
    }
    background::poke();
    with_errno(object, saved)
}

/// No memory is `ENOMEM`; with memory `errno` is as it was, whatever was refused on the way.
pub(crate) fn with_errno(object: *mut u8, saved: i32) -> *mut u8 {
    process::set_errno(if object.is_null() { process::ENOMEM } else { saved });
    object
}

fn no_memory() -> *mut u8 {
    with_errno(null_mut(), 0)
}

/// `size` bytes that read as zero.
pub fn calloc(size: usize) -> *mut u8 {
    if size > MAX_CLEARED {
        // The page heap knows which pages read as zeros already: they are neither cleared nor touched.
        return malloc_large(size, 1, true);
    }
    let object = malloc(size);
    if !object.is_null() {
        // SAFETY: the object holds `size` bytes and is ours until we return it.
        unsafe { object.write_bytes(0, size) };
    }
    object
}

/// `size` bytes at a multiple of `align`, a power of two.
pub fn aligned(align: usize, size: usize) -> *mut u8 {
    debug_assert!(align.is_power_of_two());
    if align <= 16 {
        return malloc(size);
    }
    match size_class::class_of_aligned(size, align) {
        Some(class) => {
            // SAFETY: as in `malloc`.
            let object = unsafe { ThreadCache::pop(tls::get(), class) };
            if object.is_null() { malloc_sized(class, size, align) } else { object }
        }
        None if align > MAX_SIZE => no_memory(),
        None => malloc_large(size, align, false),
    }
}

/// Frees an object on the fast path; `false` when that could not be done, and [`free`] must.
///
/// # Safety
/// Any pointer may be given; if it is an object of ours the caller gives it up, unless the answer is `false`.
#[inline(always)]
pub unsafe fn try_free(pointer: *mut u8) -> bool {
    // SAFETY: the cache is this thread's or the one that nobody uses.
    unsafe { ThreadCache::push(tls::get(), pointer) }
}

/// Largest size that [`try_free_trusted`] takes.
pub const MAX_TRUSTED: usize = MAX_QUICK;

/// Frees an object of a size that the caller vouches for, on the fast path; `false` when that could not be done, and [`free`] must.
///
/// # Safety
/// The object is out, was asked for with `size` bytes, at most [`MAX_TRUSTED`], and no alignment above 16 (or, if it was resized, lies in the class of `size`), and the
/// caller gives it up, unless the answer is `false`.
#[inline(always)]
pub unsafe fn try_free_trusted(object: *mut u8, size: usize) -> bool {
    // SAFETY: by the contract; the cache is this thread's or the one that nobody uses.
    unsafe { ThreadCache::push_trusted(tls::get(), object, size) }
}

/// Whether objects of two sizes, without alignment, are of one class, so that one can stand for the other.
#[inline]
pub fn are_alike(size: usize, other: usize) -> bool {
    // A buffer of the kit has exactly the size that was asked for.
    size.max(other) <= MAX_CLASSED && size_class::class_of(size) == size_class::class_of(other) && !debug::in_use()
}

/// Frees an object; null is nothing to free.
///
/// # Safety
/// Any pointer may be given; if it is an object of ours the caller gives it up.
pub unsafe fn free(pointer: *mut u8) -> Result<(), Misuse> {
    if pointer.is_null() {
        return Ok(());
    }
    if !READY.load(Ordering::Relaxed) {
        return Err(Misuse::Foreign);
    }
    // SAFETY: by the contract.
    if let Some(freed) = unsafe { debug::free(pointer) } {
        return freed;
    }
    if !nested::is_nested() && HEAP.free_large(pointer as usize) {
        return Ok(());
    }
    // SAFETY: by the contract.
    if unsafe { free_on_morphed(pointer) } {
        return Ok(());
    }
    let visitor = without_cache();
    // SAFETY: by the contract.
    if visitor.is_some_and(|rseq| unsafe { free_on_processor(rseq, pointer) }) {
        return Ok(());
    }
    if nested::is_nested() {
        // SAFETY: by the contract.
        unsafe { free_apart(pointer) };
        return Ok(());
    }
    let cache = if visitor.is_some() { None } else { own_cache() };
    let saved = process::errno();
    // SAFETY: it is this thread's cache, and by the contract.
    let result = nested::within(|| unsafe { HEAP.take_back(cache, pointer) });
    background::poke_in_free();
    process::set_errno(saved);
    if result == Err(Misuse::Foreign) && nested::size_of(pointer).is_some() { Ok(()) } else { result }
}

/// Frees an object whose slab has morphed to its class into the thread's cache; `false` when it is none, or there is no room.
///
/// # Safety
/// As [`free`], unless the answer is `false`.
unsafe fn free_on_morphed(pointer: *mut u8) -> bool {
    if nested::is_nested() {
        return false;
    }
    let Some(cache) = existing_cache() else { return false };
    let class = nested::within(|| HEAP.recognise_morphed(pointer));
    // SAFETY: it is this thread's cache; the object is one of the class, and given up.
    class.is_some_and(|class| unsafe { (*cache).push_checked(class, pointer) })
}

/// Bytes that may be used behind an object's pointer; 0 behind null, and for a signal handler that has interrupted the one who knows.
///
/// # Safety
/// Any pointer may be given; if it is an object, nobody frees it meanwhile.
pub unsafe fn usable_size(pointer: *mut u8) -> Result<usize, Misuse> {
    // SAFETY: as in `malloc`.
    if let Some((class, _)) = unsafe { ThreadCache::recognise(tls::get(), pointer) } {
        return Ok(size_class::size_of_class(class));
    }
    if pointer.is_null() {
        return Ok(0);
    }
    if !READY.load(Ordering::Relaxed) {
        return Err(Misuse::Foreign);
    }
    if let Some(size) = nested::size_of(pointer).or_else(|| debug::size_of("malloc_usable_size", pointer)) {
        return Ok(size);
    }
    find(pointer).map_or(Ok(0), |found| found.usable())
}

/// What a pointer is; none for a signal handler that has interrupted the one who knows.
pub(crate) fn find(pointer: *mut u8) -> Option<Found> {
    let is_known = !nested::is_nested() || HEAP.is_found_at_once(pointer);
    is_known.then(|| nested::within(|| HEAP.find(pointer)))
}

/// Gives all free memory back to the system, also between objects; returns the bytes that lost their memory.
pub fn release() -> u64 {
    if !READY.load(Ordering::Relaxed) || nested::is_nested() {
        return 0;
    }
    let saved = process::errno();
    HEAP.caches.reap_all(&HEAP);
    let bytes = nested::within(|| {
        if let Some(cache) = existing_cache() {
            // SAFETY: it is this thread's cache.
            unsafe { HEAP.empty_cache(cache) };
        }
        PROCESSOR_CACHES.empty(&HEAP);
        HEAP.release()
    });
    process::set_errno(saved);
    bytes
}

/// The calling thread's cache, made if it has none yet; `None` for a thread that is ending, or without memory.
fn own_cache() -> Option<*mut ThreadCache> {
    let cache = tls::get();
    if !tls::is_none(cache) {
        // SAFETY: it is this thread's cache.
        unsafe { limits::heed(cache) };
        return Some(cache);
    }
    if cache == tls::gone() || cache == tls::alone() || nested::is_nested() { None } else { thread_begins() }
}

/// The calling thread's cache, if it has one.
pub(crate) fn existing_cache() -> Option<*mut ThreadCache> {
    let cache = tls::get();
    (!tls::is_none(cache)).then_some(cache)
}

#[cold]
fn thread_begins() -> Option<*mut ThreadCache> {
    if !set_up() {
        return None;
    }
    let cache = nested::within(new_cache)?;
    segment::add(&SEGMENT.threads_seen, 1);
    tls::set(cache);
    // From here on this thread can allocate, which the next line may need (see `Key::set`).
    if let Some(key) = EXIT_KEY.load(Ordering::Relaxed).checked_sub(1) {
        Key::from_number(key).set(cache as usize);
    }
    Some(cache)
}

fn count_threads(caches: &Registry) {
    OWN_CACHES.store(caches.taken(), Ordering::Relaxed);
    background::count_threads(caches.taken() + usize::from(PROCESSOR_CACHES.in_use()));
}

/// Runs at a thread's end, perhaps before other destructors that still allocate and free: those do without a cache.
///
/// # Safety
/// Called by the C library only.
unsafe extern "C" fn thread_ends(_: *mut c_void) {
    let registered = PROCESSOR_CACHES.rseq().is_some_and(Rseq::is_registered);
    give_cache_up(if registered { tls::gone() } else { tls::alone() });
    // The C library ends the process when the main thread and all others have ended; ours would count.
    if thread::is_main() {
        background::seal();
    }
}

/// Bytes of objects with the program, as far as known without stopping it: what caches hold is counted in.
pub fn bytes_in_use() -> u64 {
    if !READY.load(Ordering::Relaxed) {
        return 0;
    }
    let large = SEGMENT.huge_bytes.load(Ordering::Relaxed) + HEAP.large_bytes();
    let own = existing_cache().map_or(0, |c| {
        // SAFETY: it is this thread's cache.
        unsafe { (*c).bytes() as u64 }
    });
    (HEAP.bytes_out() + large).saturating_sub(own + PROCESSOR_CACHES.bytes() as u64)
}

/// Sets an option while the program runs; `false` when there is no such key or value.
pub fn option_set(key: &[u8], value: &[u8]) -> bool {
    let set = options::set(key, value);
    trace::begin();
    set
}

/// Whether the heap is set up: before, no pointer is ours.
pub(crate) fn is_ready() -> bool {
    READY.load(Ordering::Relaxed)
}

/// Counts of one size class, `1..=CLASSES`.
pub fn class_stats(class: usize) -> craton_slab::SlabStats {
    HEAP.class_stats(class)
}

/// Ends the process with a line about a bad pointer.
pub fn die(call: Call, pointer: *mut u8, misuse: Misuse) -> ! {
    debug::reported_misuse(call, pointer, misuse);
    crate::report::misuse(call, pointer, misuse)
}

const _: () = assert!(PAGE_SIZE >= 4096);
