//! What is checked of which objects: the option `debug`.
//!
//! **What.** `debug=CHECKS[:TARGETS]`: checks by name, separated by commas; targets, separated by `+`, are sizes in bytes (the class that serves
//! them), `large` for what is above all classes, `malloc` for all of these, and names of caches. Without targets all of malloc and all caches.
//!
//! **Threads.** Checks of classes are read without a lock; each request heeds what it finds. Names of caches are under a lock.
//!
//! **Unsafe.** Keeps the log, which is made once, for all to read.

use crate::front::{self, HEAP, PROCESSOR_CACHES};
use crate::size_class::{CLASSES, MAX_CLASSED, class_of, size_of_class};
use crate::text::Text;
use crate::{limits, nested};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering, Ordering::Relaxed};
use craton_base::Table;
use craton_os::{Decimal, Mutex, mapping};
use craton_slab::debug::audit::{Entry, Log};

/// The checks, as bits.
pub(crate) const AUDIT: u8 = 1;
pub(crate) const REDZONE: u8 = 2;
pub(crate) const POISON: u8 = 4;
pub(crate) const VERIFY: u8 = 8;
pub(crate) const GUARD: u8 = 16;
pub(crate) const UNMAP: u8 = 32;
pub(crate) const LEAK: u8 = 64;
/// A buffer of the sampled form: on pages of its own, with redzones and stacks.
pub(crate) const SAMPLED: u8 = 128;

const NAMES: [(&[u8], u8); 8] = [
    (b"audit", AUDIT),
    (b"redzone", REDZONE),
    (b"poison", POISON),
    (b"verify", VERIFY),
    (b"guard", GUARD),
    // Only pages of its own can be closed under a buffer.
    (b"unmap", UNMAP | GUARD),
    (b"leak", LEAK),
    (b"all", AUDIT | REDZONE | POISON | VERIFY | GUARD | UNMAP | LEAK),
];

/// Bytes of the option's value, and of a cache's name, at most.
pub(crate) const TEXT_MAX: usize = 256;

/// By class, `0` for what is above all of them.
static CHECKS: [AtomicU8; CLASSES + 1] = [const { AtomicU8::new(0) }; CLASSES + 1];
/// All checks of any class or cache that are or were on.
static EVER: AtomicU8 = AtomicU8::new(0);
static CACHES: AtomicU8 = AtomicU8::new(0);

/// What the option was set to last, and its length.
static TEXT: Mutex<([u8; TEXT_MAX], usize)> = Mutex::new(([0; TEXT_MAX], 0));

/// Entries of the log: the option `audit_log`.
static LOG_ENTRIES: AtomicU32 = AtomicU32::new(1 << 16);

struct TheLog(UnsafeCell<Log>);

// SAFETY: written once, under a lock, before `LOG_MADE` says that it may be read.
unsafe impl Sync for TheLog {}

static LOG: TheLog = TheLog(UnsafeCell::new(Log::EMPTY));
static LOG_MADE: AtomicBool = AtomicBool::new(false);

/// Where the log is, and whether there is one, for those who read the memory of another process.
pub(super) const WHERE: [*const u8; 2] = [(&raw const LOG).cast(), (&raw const LOG_MADE).cast()];

/// Objects have been freed by the size that the program says alone, so that what a thread's cache holds cannot be told.
static TRUSTS: AtomicBool = AtomicBool::new(false);

/// What is checked of a class, or, for 0, of what is above all classes.
#[inline]
pub(crate) fn checks_of_class(class: usize) -> u8 {
    CHECKS[class].load(Relaxed)
}

/// What is checked of a cache of this name.
pub(crate) fn checks_of_cache(name: &[u8]) -> u8 {
    let all = CACHES.load(Relaxed);
    if all == 0 {
        return 0;
    }
    let text = TEXT.lock();
    match targets_in(&text.0[..text.1]) {
        None => all,
        Some(targets) if targets.split(|b| *b == b'+').any(|target| target == name) => all,
        Some(_) => 0,
    }
}

/// Whether any class or cache is or was checked, so that there may be buffers on the heap.
pub(super) fn ever_checks() -> bool {
    EVER.load(Relaxed) != 0
}

/// Whether any buffer may have been made with pages of its own by the option.
pub(super) fn guards() -> bool {
    EVER.load(Relaxed) & GUARD != 0
}

/// Whether addresses that are freed are looked at.
pub(super) fn verifies() -> bool {
    EVER.load(Relaxed) & (VERIFY | AUDIT) != 0
}

/// Whether leaks are searched for at the exit.
pub(super) fn searches_leaks() -> bool {
    EVER.load(Relaxed) & LEAK != 0
}

/// The log, if there is one.
pub(crate) fn log() -> Option<&'static Log> {
    // ORDERING: Acquire pairs with the Release in `make_log`. SAFETY: not written any more.
    if LOG_MADE.load(Ordering::Acquire) { Some(unsafe { &*LOG.0.get() }) } else { None }
}

/// Where the log lies: address and bytes.
pub(super) fn log_extent() -> (usize, usize) {
    log().map_or((0, 0), |log| (log.address(), LOG_ENTRIES.load(Relaxed) as usize * size_of::<Entry>()))
}

/// Notes that the program frees objects past the checks of their pointers.
pub(crate) fn note_trust() {
    if !TRUSTS.load(Relaxed) {
        TRUSTS.store(true, Relaxed);
    }
}

/// The part of the option's value behind `:`.
fn targets_in(value: &[u8]) -> Option<&[u8]> {
    value.iter().position(|b| *b == b':').map(|i| &value[i + 1..])
}

fn checks_in(value: &[u8]) -> Option<u8> {
    if matches!(value, b"" | b"0" | b"none") {
        return Some(0);
    }
    value
        .split(|b| *b == b',')
        .try_fold(0, |checks, name| NAMES.iter().find(|(known, _)| *known == name).map(|(_, bit)| checks | bit))
}

/// Whether a word is one of a list of checks, as it stands behind a comma.
pub(crate) fn is_check(word: &[u8]) -> bool {
    let word = word.split(|b| *b == b':').next().unwrap_or_default();
    NAMES.iter().any(|(name, _)| *name == word)
}

/// What is said of a bad value.
pub(crate) const BAD: &str = "bad value (checks are audit, redzone, poison, verify, guard, unmap, leak, all and none; behind them may stand \
                              a colon and targets, separated by +: sizes in bytes, large, malloc, names of caches); ignored";

/// Why the option cannot be set now, if it is for that.
pub(crate) fn why_not(value: &[u8]) -> Option<&'static str> {
    (TRUSTS.load(Relaxed) && checks_in(before_targets(value)).is_some_and(|checks| checks != 0)).then_some(
        "this program frees objects by their sizes alone (Rust's global allocator): it can be set at the start only, by CRATON_OPTIONS; ignored",
    )
}

fn before_targets(value: &[u8]) -> &[u8] {
    value.split(|b| *b == b':').next().unwrap_or_default()
}

/// Sets the option; `false` when the value is not known, or cannot be heeded any more.
pub(crate) fn set(value: &[u8]) -> bool {
    if value.len() > TEXT_MAX {
        return false;
    }
    let Some(checks) = checks_in(before_targets(value)) else { return false };
    let mut classes = [0u8; CLASSES + 1];
    let mut caches = 0;
    match targets_in(value) {
        None => (classes, caches) = ([checks; CLASSES + 1], checks),
        Some(targets) => {
            for target in targets.split(|b| *b == b'+') {
                match target {
                    b"" => return false,
                    b"malloc" => classes = [checks; CLASSES + 1],
                    b"large" => classes[0] = checks,
                    size if size.iter().all(u8::is_ascii_digit) => match Decimal::parse(size) {
                        Some(size) if size as usize <= MAX_CLASSED => classes[class_of(size as usize)] = checks,
                        Some(_) => classes[0] = checks,
                        None => return false,
                    },
                    // A name cannot be told from a list that goes on behind the targets, nor from a size that is none.
                    name if name[0].is_ascii_digit() || name.iter().any(|b| b",:- ".contains(b)) => return false,
                    _ => caches = checks,
                }
            }
        }
    }
    if why_not(value).is_some() || checks != 0 && !front::set_up() {
        return false;
    }
    super::table::ask_for_huge(HEAP.backs_huge());
    let mut text = TEXT.lock();
    if text.0[..text.1] == *value {
        return true;
    }
    if checks & AUDIT != 0 {
        make_log();
    }
    text.0[..value.len()].copy_from_slice(value);
    text.1 = value.len();
    EVER.fetch_or(checks, Relaxed);
    for (kept, checks) in CHECKS.iter().zip(classes) {
        kept.store(checks, Relaxed);
    }
    CACHES.store(caches, Relaxed);
    drop(text);
    if checks != 0 {
        super::IN_USE.store(true, Relaxed);
        super::fault::watch();
    }
    // Threads give up what their caches hold of these classes, and close their lists, as they come by.
    limits::ask_for_caches();
    // Processors' caches, which have no lists to close: what they hold goes out before the first buffer of a thread that uses them.
    if checks != 0 {
        nested::within(|| PROCESSOR_CACHES.empty(&HEAP));
    }
    true
}

/// Writes what the option is set to; `true`.
pub(crate) fn show(into: &mut Text<'_>) -> bool {
    let text = TEXT.lock();
    into.bytes(if text.1 == 0 { b"none" } else { &text.0[..text.1] });
    true
}

/// Sets the option `audit_log`: entries of the log, before it is made.
pub(crate) fn set_log_entries(value: &[u8]) -> bool {
    let entries = Decimal::parse(value).filter(|n| (1..=1 << 28).contains(n));
    match entries {
        Some(n) if !LOG_MADE.load(Relaxed) => LOG_ENTRIES.store(n as u32, Relaxed),
        Some(n) => return n == LOG_ENTRIES.load(Relaxed).into(),
        None => return false,
    }
    true
}

/// Entries of the log.
pub(crate) fn log_entries() -> u64 {
    LOG_ENTRIES.load(Relaxed).into()
}

/// Makes the log, once; under the lock of the text.
fn make_log() {
    if LOG_MADE.load(Relaxed) {
        return;
    }
    let entries = LOG_ENTRIES.load(Relaxed) as usize;
    if let Some(at) = mapping::map(entries * size_of::<Entry>(), align_of::<Entry>()) {
        // SAFETY: the mapping is the log's for ever, zeros are valid entries; nobody reads the log before the flag is set.
        unsafe { *LOG.0.get() = Log::new(Table::new(at as *mut Entry, entries), entries) };
        // ORDERING: Release pairs with the Acquire in `log`.
        LOG_MADE.store(true, Ordering::Release);
    }
}

pub(super) fn hold_for_fork(nested: bool) {
    TEXT.hold_for_fork(nested);
}

/// # Safety
/// As [`Mutex::release_after_fork`].
pub(super) unsafe fn release_after_fork() {
    // SAFETY: by the contract.
    unsafe { TEXT.release_after_fork() };
}

/// How an object is spoken of that is asked for with so many bytes.
pub(super) fn class_bytes(size: usize) -> Option<usize> {
    (size <= MAX_CLASSED).then(|| size_of_class(class_of(size)))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn checks_are_known_by_name_and_nothing_else_is() {
        assert_eq!(checks_in(b"audit,redzone"), Some(AUDIT | REDZONE));
        assert_eq!(checks_in(b"all"), Some(!SAMPLED));
        assert_eq!(checks_in(b"none"), Some(0));
        for bad in [&b"audits"[..], b"audit,", b",", b"audit redzone", b"1"] {
            assert_eq!(checks_in(bad), None, "{}", bad.escape_ascii());
        }
        assert!(is_check(b"leak:64") && is_check(b"poison") && !is_check(b"thp"));
        assert_eq!(targets_in(b"audit:48+large"), Some(&b"48+large"[..]));
    }
}
