//! Object caches: free values stay constructed.
//!
//! ```
//! let buffers = craton::ObjectCache::new("buffers", || Vec::<u8>::with_capacity(4096))?;
//! {
//!     let mut buffer = buffers.alloc()?; // constructed now: the cache is empty
//!     buffer.extend(b"hello");
//!     assert_eq!(buffer.len(), 5);
//!     buffer.clear(); // goes back as it is, its memory and all
//! }
//! assert_eq!(buffers.alloc()?.capacity(), 4096); // the same one
//! assert_eq!(buffers.stats().constructed, 1);
//! # Ok::<(), craton::Error>(())
//! ```
//!
//! An allocated object borrows its cache:
//!
//! ```compile_fail,E0505
//! let cache = craton::ObjectCache::new("numbers", || 1)?;
//! let number = cache.alloc()?;
//! drop(cache);
//! assert_eq!(*number, 1);
//! # Ok::<(), craton::Error>(())
//! ```
//!
//! Objects move between threads, so they must be `Send`:
//!
//! ```compile_fail,E0277
//! craton::ObjectCache::new("counts", || std::rc::Rc::new(1));
//! ```
//!
//! Any thread that returns memory may drop objects; the heap's background thread does not.
//!
//! **Unsafe.** Turns memory of the cache into values; keeps the closure where it does not move.

use crate::error::Error;
use core::ffi::{c_int, c_void};
use core::fmt;
use core::marker::PhantomData;
use core::mem::forget;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use core::time::Duration;
use craton_malloc::caches::{Fault, NEVER, NO_ARRAYS, Options, Refused, api};
use craton_malloc::front;

pub use craton_malloc::caches::CacheStats;

/// A cache of constructed values. Forgotten [`CacheBox`]es keep it and all of them alive.
pub struct ObjectCache<T: Send + 'static> {
    handle: usize,
    closure: Closure,
    makes: PhantomData<fn() -> T>,
}

/// Options of a cache.
///
/// ```
/// let pool = craton::ObjectCacheOptions::new().name("pool").limit_objects(2).create(|| [0u8; 64])?;
/// let (a, b) = (pool.alloc()?, pool.alloc()?);
/// assert_eq!(pool.alloc().err(), Some(craton::Error::NoMemory));
/// # drop((a, b));
/// # Ok::<(), craton::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct ObjectCacheOptions<'a> {
    name: &'a str,
    limit_objects: usize,
    limit_bytes: usize,
    working_set_ms: u32,
    flags: u32,
}

impl<'a> ObjectCacheOptions<'a> {
    /// No name, no limits, a working set of 15 s.
    pub fn new() -> Self {
        Self::default()
    }

    /// In statistics, reports and `debug` targets: see [`Error::CacheName`].
    pub fn name(self, name: &'a str) -> Self {
        Self { name, ..self }
    }

    /// The most objects, constructed free ones included; 0: no limit.
    pub fn limit_objects(self, objects: usize) -> Self {
        Self { limit_objects: objects, ..self }
    }

    /// The most bytes of slabs (8 KiB or more) and magazines; 0: no limit.
    pub fn limit_bytes(self, bytes: usize) -> Self {
        Self { limit_bytes: bytes, ..self }
    }

    /// When unneeded objects are dropped, in ms from 1 on; `None`: never.
    pub fn working_set(self, interval: Option<Duration>) -> Self {
        let ms = interval.map_or(NEVER, |i| u32::try_from(i.as_millis()).unwrap_or(NEVER).max(1));
        Self { working_set_ms: ms, ..self }
    }

    /// Whether CPUs keep lock-free arrays of free objects; on by default.
    pub fn arrays(self, on: bool) -> Self {
        Self { flags: if on { 0 } else { NO_ARRAYS }, ..self }
    }

    /// Also fails with [`Error::NoMemory`] at 4096 caches.
    pub fn create<T: Send + 'static>(
        self,
        make: impl Fn() -> T + Send + Sync + 'static,
    ) -> Result<ObjectCache<T>, Error> {
        self.create_fallible(move || Some(make()))
    }

    /// [`Self::create`] with a fallible closure: `None` is [`Error::Constructor`].
    pub fn create_fallible<T: Send + 'static, F: Fn() -> Option<T> + Send + Sync + 'static>(
        self,
        make: F,
    ) -> Result<ObjectCache<T>, Error> {
        let closure = Closure::new(make).ok_or(Error::NoMemory)?;
        let made = api::create(&Options {
            name: self.name.as_bytes(),
            size: size_of::<T>().max(1),
            align: align_of::<T>(),
            constructor: Some(construct::<T, F>),
            destructor: if core::mem::needs_drop::<T>() { Some(destroy::<T>) } else { None },
            reclaim: None,
            argument: closure.at.cast(),
            limit_objects: self.limit_objects,
            limit_bytes: self.limit_bytes,
            working_set_ms: self.working_set_ms,
            flags: self.flags,
        });
        match made {
            Ok(handle) => Ok(ObjectCache { handle, closure, makes: PhantomData }),
            Err(why) => {
                // SAFETY: nothing else points to the closure.
                unsafe { closure.end() };
                Err(match why {
                    Refused::Name => Error::CacheName,
                    Refused::NoMemory => Error::NoMemory,
                    Refused::Layout(_) | Refused::Flags | Refused::Functions => Error::Layout,
                })
            }
        }
    }
}

struct Closure {
    at: *mut u8,
    drop: unsafe fn(*mut u8),
}

// SAFETY: every constructor requires a `Send` and `Sync` closure.
unsafe impl Send for Closure {}
// SAFETY: likewise.
unsafe impl Sync for Closure {}

impl Closure {
    fn new<F: Send + Sync + 'static>(closure: F) -> Option<Self> {
        let at = if size_of::<F>() == 0 {
            align_of::<F>() as *mut u8
        } else {
            front::aligned(align_of::<F>(), size_of::<F>())
        };
        if at.is_null() {
            return None;
        }
        // SAFETY: of the closure's size and alignment.
        unsafe { at.cast::<F>().write(closure) };
        Some(Self { at, drop: drop_closure::<F> })
    }

    /// # Safety
    /// Once; no call of the closure follows.
    unsafe fn end(&self) {
        // SAFETY: by the contract; `new`'s closure.
        unsafe { (self.drop)(self.at) }
    }
}

/// # Safety
/// `at` is such a closure, in memory of the heap unless it has no size.
unsafe fn drop_closure<F>(at: *mut u8) {
    // SAFETY: by the contract.
    unsafe {
        at.cast::<F>().drop_in_place();
        if size_of::<F>() > 0
            && let Err(misuse) = front::free(at)
        {
            front::die("ObjectCache::drop", at, misuse);
        }
    }
}

/// # Safety
/// `object` has room for a `T`; `argument` is the closure.
unsafe extern "C-unwind" fn construct<T, F: Fn() -> Option<T>>(object: *mut c_void, argument: *mut c_void) -> c_int {
    // SAFETY: by the contract.
    let make = unsafe { &*argument.cast::<F>() };
    match make() {
        Some(value) => {
            // SAFETY: by the contract.
            unsafe { object.cast::<T>().write(value) };
            0
        }
        None => 1,
    }
}

/// # Safety
/// `object` is a `T`, given up.
unsafe extern "C-unwind" fn destroy<T>(object: *mut c_void, _: *mut c_void) {
    // SAFETY: by the contract.
    unsafe { object.cast::<T>().drop_in_place() }
}

impl<T: Send + 'static> ObjectCache<T> {
    /// A cache with the default options.
    pub fn new(name: &str, make: impl Fn() -> T + Send + Sync + 'static) -> Result<Self, Error> {
        ObjectCacheOptions::new().name(name).create(make)
    }

    /// A closure's panic unwinds, and leaves nothing.
    #[inline]
    pub fn alloc(&self) -> Result<CacheBox<'_, T>, Error> {
        let object = api::alloc(self.handle);
        self.boxed("ObjectCache::alloc", object)
    }

    /// Waits, without memory or at the limit, for a freed object.
    pub fn alloc_timeout(&self, timeout: Duration) -> Result<CacheBox<'_, T>, Error> {
        let ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        let object = api::alloc_wait(self.handle, ns);
        self.boxed("ObjectCache::alloc_timeout", object)
    }

    #[inline]
    fn boxed(&self, call: &'static str, object: Result<*mut u8, Fault>) -> Result<CacheBox<'_, T>, Error> {
        match object {
            Ok(object) => {
                // SAFETY: objects are not null.
                let value = unsafe { NonNull::new_unchecked(object.cast()) };
                Ok(CacheBox { value, cache: self, owns: PhantomData })
            }
            Err(fault) => Err(self.error(call, fault)),
        }
    }

    /// Constructs objects until `objects` can be live without requests for memory; 0 drops the
    /// reserve.
    pub fn prefill(&self, objects: usize) -> Result<(), Error> {
        api::prefill(self.handle, objects).map_err(|f| self.error("ObjectCache::prefill", f))
    }

    /// Drops free objects of unreserved whole slabs; returns the bytes freed.
    pub fn reap(&self) -> Result<usize, Error> {
        api::reap(self.handle).map_err(|f| self.error("ObjectCache::reap", f))
    }

    /// Counts of the cache.
    pub fn stats(&self) -> CacheStats {
        match api::stats(self.handle) {
            Ok(stats) => stats,
            Err(misuse) => front::die("ObjectCache::stats", self.handle as *mut u8, misuse),
        }
    }

    #[cold]
    fn error(&self, call: &'static str, fault: Fault) -> Error {
        match fault {
            Fault::NoMemory => Error::NoMemory,
            Fault::TimedOut => Error::TimedOut,
            Fault::Recursive => Error::Recursive,
            Fault::Constructor => Error::Constructor,
            Fault::Misuse(misuse) => front::die(call, self.handle as *mut u8, misuse),
        }
    }
}

impl<T: Send + 'static> Drop for ObjectCache<T> {
    fn drop(&mut self) {
        match api::destroy(self.handle) {
            // SAFETY: only the cache called the closure.
            Ok(Ok(())) => unsafe { self.closure.end() },
            // The values of forgotten boxes stay, and so does the closure.
            Ok(Err(_)) | Err(Fault::Recursive) => {}
            Err(fault) => {
                self.error("ObjectCache::drop", fault);
            }
        }
    }
}

impl<T: Send + 'static> fmt::Debug for ObjectCache<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stats = self.stats();
        f.debug_struct("ObjectCache")
            .field("name", &stats.name())
            .field("in_use", &stats.in_use)
            .finish_non_exhaustive()
    }
}

/// An object, returned to its cache, still constructed, when dropped.
pub struct CacheBox<'c, T: Send + 'static> {
    value: NonNull<T>,
    cache: &'c ObjectCache<T>,
    owns: PhantomData<T>,
}

// SAFETY: the box owns its object; any thread may free it.
unsafe impl<T: Send> Send for CacheBox<'_, T> {}
// SAFETY: `&CacheBox` gives only `&T`.
unsafe impl<T: Send + Sync> Sync for CacheBox<'_, T> {}

impl<'c, T: Send + 'static> CacheBox<'c, T> {
    /// The value for good: the cache will not end.
    pub fn leak(self) -> &'c mut T {
        let mut value = self.value;
        forget(self);
        // SAFETY: the box's object, which stays.
        unsafe { value.as_mut() }
    }
}

impl<T: Send + 'static> Deref for CacheBox<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the box's object.
        unsafe { self.value.as_ref() }
    }
}

impl<T: Send + 'static> DerefMut for CacheBox<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the box's object, exclusively borrowed.
        unsafe { self.value.as_mut() }
    }
}

impl<T: Send + 'static> Drop for CacheBox<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the box's object, dropped here.
        if let Err(misuse) = unsafe { api::free(self.cache.handle, self.value.as_ptr().cast()) } {
            front::die("CacheBox::drop", self.value.as_ptr().cast(), misuse);
        }
    }
}

impl<T: Send + fmt::Debug + 'static> fmt::Debug for CacheBox<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
