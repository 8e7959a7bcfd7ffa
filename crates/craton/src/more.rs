//! Craton's functions beyond `GlobalAlloc`.
//!
//! **Unsafe.** Takes ownership of the program's objects.

use crate::error::Error;
use crate::{ALIGN, Craton};
use core::alloc::Layout;
use core::ptr::NonNull;
use core::sync::atomic::Ordering::Relaxed;
use craton_malloc::segment::Segment;
use craton_malloc::stats::counted;
use craton_malloc::text::Text;
use craton_malloc::{batch, front, hints, json, options, profile_file, sizes};
use craton_tables::counters;

/// How the program will use an object. Each kind has separate slabs and hugepages; each object
/// costs a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Hint {
    /// Lies on small pages, which the system reclaims one by one.
    Cold,
    /// Lies on hugepages, in a small heap too.
    Hot,
    /// One of many long-lived objects: off others' hugepages.
    Dense,
    /// Freed together with its like: their hugepages come free whole.
    ShortLived,
}

/// Of each row of the table but the process id.
macro_rules! stats {
    ($pid:ident: $unit_of_pid:ident, $text_of_pid:literal; $($name:ident: $unit:ident, $text:literal;)*) => {
        /// Counts of the process.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        #[non_exhaustive]
        pub struct Stats {
            $(#[doc = $text] pub $name: u64,)*
        }

        impl Stats {
            fn of(counted: &Segment) -> Self {
                Self { $($name: counted.$name.load(Relaxed),)* }
            }
        }
    };
}

counters!(process, stats);

impl Craton {
    /// Usable bytes of an object of this layout; 0 for an impossible size.
    ///
    /// ```
    /// use std::alloc::Layout;
    /// assert_eq!(craton::Craton::good_size(Layout::new::<[u8; 100]>()), 112);
    /// ```
    pub fn good_size(layout: Layout) -> usize {
        sizes::good_size(layout.size(), layout.align())
    }

    /// The slice's length is the usable size. Free it by `dealloc` with the same alignment and any
    /// size from the requested to the usable one.
    ///
    /// ```
    /// use std::alloc::{GlobalAlloc, Layout};
    /// let layout = Layout::new::<[u8; 100]>();
    /// let object = craton::Craton.alloc_at_least(layout)?;
    /// assert_eq!(object.len(), 112);
    /// // SAFETY: the object is ours, and freed once.
    /// unsafe { craton::Craton.dealloc(object.cast().as_ptr(), layout) };
    /// # Ok::<(), craton::Error>(())
    /// ```
    pub fn alloc_at_least(&self, layout: Layout) -> Result<NonNull<[u8]>, Error> {
        let (object, size) = sizes::alloc_at_least(layout.size(), layout.align());
        NonNull::new(object).map(|o| NonNull::slice_from_raw_parts(o, size)).ok_or(Error::NoMemory)
    }

    /// Aligned to at most 2 MiB. Free it by [`Craton::free_hinted`]: `dealloc` assumes an ordinary
    /// slab.
    ///
    /// ```
    /// use std::alloc::Layout;
    /// let archived = craton::Craton.alloc_hinted(Layout::new::<[u64; 8]>(), craton::Hint::Cold)?;
    /// // SAFETY: the object is ours, and freed once.
    /// unsafe { craton::Craton.free_hinted(archived) };
    /// # Ok::<(), craton::Error>(())
    /// ```
    pub fn alloc_hinted(&self, layout: Layout, hint: Hint) -> Result<NonNull<u8>, Error> {
        let hint = match hint {
            Hint::Cold => hints::COLD,
            Hint::Hot => hints::HOT,
            Hint::Dense => hints::DENSE,
            Hint::ShortLived => hints::SHORT_LIVED,
        };
        NonNull::new(hints::alloc(layout.size(), layout.align(), hint)).ok_or(Error::NoMemory)
    }

    /// Aborts with the address of an object that is not of [`Craton::alloc_hinted`].
    ///
    /// # Safety
    /// It was not freed, and is no longer used.
    pub unsafe fn free_hinted(&self, object: NonNull<u8>) {
        // SAFETY: by the contract.
        if let Err(misuse) = unsafe { front::free(object.as_ptr()) } {
            front::die("free_hinted", object.as_ptr(), misuse);
        }
    }

    /// Returns the number of objects; the places behind them are unchanged.
    ///
    /// ```
    /// use std::{alloc::Layout, ptr::null_mut};
    /// let mut objects = [null_mut(); 32];
    /// assert_eq!(craton::Craton.alloc_batch(Layout::new::<[u64; 4]>(), &mut objects), 32);
    /// // SAFETY: the objects are ours, and freed once.
    /// unsafe { craton::Craton.free_batch(&objects) };
    /// ```
    pub fn alloc_batch(&self, layout: Layout, into: &mut [*mut u8]) -> usize {
        if layout.align() <= ALIGN {
            // SAFETY: the slice has these places.
            return unsafe { batch::alloc(layout.size(), into.len(), into.as_mut_ptr()) };
        }
        for (i, place) in into.iter_mut().enumerate() {
            let object = front::aligned(layout.align(), layout.size());
            if object.is_null() {
                return i;
            }
            *place = object;
        }
        into.len()
    }

    /// Frees objects of any layouts, and skips null pointers.
    ///
    /// # Safety
    /// Each is Craton's, not freed, and no longer used.
    pub unsafe fn free_batch(&self, objects: &[*mut u8]) {
        // SAFETY: by the contract.
        unsafe { batch::free(objects, |object, misuse| front::die("free_batch", object, misuse)) }
    }

    /// Releases all free memory, also between objects, to the system; returns the bytes.
    pub fn release(&self) -> u64 {
        front::release()
    }

    /// Counts of the process.
    ///
    /// ```
    /// #[global_allocator]
    /// static ALLOCATOR: craton::Craton = craton::Craton;
    ///
    /// assert!(ALLOCATOR.stats().refills > 0);
    /// ```
    pub fn stats(&self) -> Stats {
        Stats::of(counted())
    }

    /// Writes all statistics as JSON, truncated, and a 0 byte; returns the full length.
    ///
    /// ```
    /// let mut buffer = vec![0; craton::Craton.stats_json(&mut []) + 1000];
    /// let len = craton::Craton.stats_json(&mut buffer);
    /// assert!(buffer[..len].starts_with(b"{\"version\":1,"));
    /// ```
    pub fn stats_json(&self, buffer: &mut [u8]) -> usize {
        json::write(buffer)
    }

    /// Writes the heap profile, for `craton profile FILE`. `%p` in the path stands for the process
    /// id, `%n` for the file's number. The file appears whole; on failure an earlier one stays.
    /// Under `debug=audit` it is exact.
    ///
    /// ```
    /// let path = std::env::temp_dir().join("craton-%p.profile");
    /// craton::Craton.write_profile(path.to_str().unwrap())?;
    /// # std::fs::remove_file(path.to_str().unwrap().replace("%p", &std::process::id().to_string())).unwrap();
    /// # Ok::<(), craton::Error>(())
    /// ```
    pub fn write_profile(&self, path: &str) -> Result<(), Error> {
        profile_file::write_by_call(path.as_bytes()).map_err(Error::File)
    }

    /// Sets an option, as `CRATON_OPTIONS` does.
    ///
    /// ```
    /// craton::Craton.set_option("thread_cache", "1000000")?;
    /// assert_eq!(craton::Craton.option("thread_cache", &mut [0; 16]), Some("1000000"));
    /// assert_eq!(craton::Craton.set_option("thread_cache", "much"), Err(craton::Error::Option));
    /// # Ok::<(), craton::Error>(())
    /// ```
    pub fn set_option(&self, key: &str, value: &str) -> Result<(), Error> {
        if options::set_by_program(key.as_bytes(), value.as_bytes()) { Ok(()) } else { Err(Error::Option) }
    }

    /// `None` if unknown, not UTF-8, or longer than the buffer less a byte.
    pub fn option<'b>(&self, key: &str, buffer: &'b mut [u8]) -> Option<&'b str> {
        let mut text = Text::new(buffer);
        let known = options::get(key.as_bytes(), &mut text);
        let len = text.end();
        if !known || len >= buffer.len() {
            return None;
        }
        core::str::from_utf8(&buffer[..len]).ok()
    }

    /// The names of all options, in alphabetical order.
    ///
    /// ```
    /// assert!(craton::Craton.options().any(|key| key == "release_rate"));
    /// ```
    pub fn options(&self) -> impl Iterator<Item = &'static str> + use<> {
        (0..).map_while(options::name).filter_map(|key| key.to_str().ok())
    }

    /// The library's version.
    pub fn version() -> &'static str {
        env!("CARGO_PKG_VERSION")
    }
}
