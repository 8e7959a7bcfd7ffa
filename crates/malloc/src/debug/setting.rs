//! What is checked of which objects: the option `debug`.
//!
//! **What.** `debug=CHECKS[:TARGETS]`: checks by name, separated by commas; targets, separated by `+`, are sizes in bytes (the class that serves
//! them), `large` for what is above all classes, `malloc` for all of these, and names of caches. Without targets all of malloc and all caches.
//!
//! **Threads.** Checks of classes are read without a lock; each request heeds what it finds. Names of caches are under a lock.
//!
//! **Unsafe.** Keeps the log, which is made once, for all to read.

use crate::front;
use crate::options::Wrong;
use crate::size_class::{CLASSES, MAX_CLASSED, class_of, size_of_class};
use crate::statics::OBJECT_CACHES;
use crate::statics::{HEAP, PROCESSOR_CACHES};
use crate::text::Text;
use crate::{limits, nested};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering, Ordering::Relaxed};
use craton_base::Table;
use craton_objects::caches::name;
use craton_os::{Decimal, Line, Mutex, mapping};
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

/// Which of its targets a cache was made for, by a bit each; changed under the lock of the text.
static MET: AtomicU64 = AtomicU64::new(0);

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
    let Some(targets) = targets_in(&text.0[..text.1]) else { return all };
    match targets.split(|b| *b == b'+').position(|target| target == name) {
        Some(i) => {
            MET.fetch_or(1 << (i % 64), Relaxed);
            all
        }
        None => 0,
    }
}

/// Tells `each` of the caches among the targets that nobody has made since the option was set: of the first 64 targets, since no more are counted.
pub(crate) fn each_unmet(mut each: impl FnMut(&[u8])) {
    if CACHES.load(Relaxed) == 0 {
        return;
    }
    let text = TEXT.lock();
    let met = MET.load(Relaxed);
    let targets = targets_in(&text.0[..text.1]).unwrap_or_default().split(|b| *b == b'+').take(64);
    for (_, name) in
        targets.enumerate().filter(|(i, target)| met >> i & 1 == 0 && name::is_name(target) && !target.is_empty())
    {
        each(name);
    }
}

/// At the exit of a process that has made caches, one line for each: a name was mistyped, or its cache was made before the option was set.
pub(super) fn tell_unmet() {
    if OBJECT_CACHES.any_made() {
        each_unmet(|name| {
            let line = Line::new().text("craton: option \"debug\": no object cache \"").bytes(name);
            line.text("\" was made since it was set, so that nothing was checked of it").print();
        });
    }
}

/// How many those are.
pub(crate) fn unmet() -> u64 {
    let mut count = 0;
    each_unmet(|_| count += 1);
    count
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

fn checks_in(value: &[u8]) -> Result<u8, Wrong<'_>> {
    if matches!(value, b"" | b"0" | b"none") {
        return Ok(0);
    }
    value.split(|b| *b == b',').try_fold(0, |checks, name| match NAMES.iter().find(|(known, _)| *known == name) {
        Some((_, bit)) => Ok(checks | bit),
        None => Err(match name {
            b"" => "has a comma too many: there is nothing before or behind it; ignored".into(),
            b"none" | b"0" => Wrong { part: name, why: "turns all checks off, and so stands alone; ignored" },
            _ => Wrong { part: name, why: NO_CHECK },
        }),
    })
}

/// Whether a word is one of a list of checks, as it stands behind a comma.
pub(crate) fn is_check(word: &[u8]) -> bool {
    let word = word.split(|b| *b == b':').next().unwrap_or_default();
    NAMES.iter().any(|(name, _)| *name == word)
}

/// What is said of words that are none of them.
const NO_CHECK: &str = "is no check (there are audit, redzone, poison, verify, guard, unmap, leak, all and none; targets stand behind a colon, and + between them); ignored";

/// Why the option cannot be set to a value.
pub(crate) fn why_not(value: &[u8]) -> Option<Wrong<'_>> {
    Wanted::now(value).err()
}

/// What a value asks for.
struct Wanted {
    checks: u8,
    classes: [u8; CLASSES + 1],
    caches: u8,
}

impl Wanted {
    /// What it asks for, if that can be had in this program.
    fn now(value: &[u8]) -> Result<Self, Wrong<'_>> {
        let wanted = Self::of(value)?;
        if TRUSTS.load(Relaxed) && wanted.checks != 0 {
            return Err(
                "this program frees objects by their sizes alone (Rust's global allocator): it can be set at the start only, by CRATON_OPTIONS; ignored".into(),
            );
        }
        Ok(wanted)
    }

    fn of(value: &[u8]) -> Result<Self, Wrong<'_>> {
        if value.len() > TEXT_MAX {
            return Err("longer than 256 bytes; ignored".into());
        }
        let checks = checks_in(before_targets(value))?;
        let Some(targets) = targets_in(value) else {
            return Ok(Self { checks, classes: [checks; CLASSES + 1], caches: checks });
        };
        let mut this = Self { checks, classes: [0; CLASSES + 1], caches: 0 };
        for target in targets.split(|b| *b == b'+') {
            let wrong = |why| Wrong { part: target, why };
            match target {
                b"" => {
                    return Err(
                        "has an empty target: nothing stands behind the colon, or before or behind a +; ignored".into(),
                    );
                }
                b"malloc" => this.classes = [checks; CLASSES + 1],
                b"large" => this.classes[0] = checks,
                size if size.iter().all(u8::is_ascii_digit) => match Decimal::parse(size) {
                    Some(size) if size as usize <= MAX_CLASSED => this.classes[class_of(size as usize)] = checks,
                    Some(size) if size <= isize::MAX as u64 => this.classes[0] = checks,
                    _ => return Err(wrong("is larger than any object; ignored")),
                },
                number if name::is_number(number) => {
                    return Err(wrong("is no size: give bytes as a plain number; ignored"));
                }
                cache if name::is_name(cache) => this.caches = checks,
                _ => return Err(wrong("can be no cache's name, nor is it a size, large or malloc; ignored")),
            }
        }
        Ok(this)
    }
}

fn before_targets(value: &[u8]) -> &[u8] {
    value.split(|b| *b == b':').next().unwrap_or_default()
}

/// Sets the option; `false` when the value is not known, or cannot be heeded any more.
pub(crate) fn set(value: &[u8]) -> bool {
    let Ok(Wanted { checks, classes, caches }) = Wanted::now(value) else { return false };
    if checks != 0 && !front::set_up() {
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
    MET.store(0, Relaxed);
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
    fn checks_are_known_by_name_and_what_is_none_is_named() {
        assert_eq!(checks_in(b"audit,redzone"), Ok(AUDIT | REDZONE));
        assert_eq!(checks_in(b"all"), Ok(!SAMPLED));
        assert_eq!(checks_in(b"none"), Ok(0));
        for (bad, part, why) in [
            (&b"audits"[..], &b"audits"[..], "is no check"),
            (b"audit,", b"", "a comma too many"),
            (b",", b"", "a comma too many"),
            (b"redzone,,poison", b"", "a comma too many"),
            (b"audit redzone", b"audit redzone", "is no check"),
            (b"audit,1", b"1", "is no check"),
            (b"all,none", b"none", "stands alone"),
            (b"all:64+", b"", "empty target"),
            (b"all:", b"", "empty target"),
            (b"all:64k", b"64k", "no size"),
            (b"all:-5", b"-5", "no size"),
            (b"all:99999999999999999999", b"99999999999999999999", "larger than any object"),
            (b"all:64,nonsense", b"64,nonsense", "can be no cache's name"),
        ] {
            let wrong = why_not(bad).unwrap();
            assert_eq!(wrong.part, part, "{}", bad.escape_ascii());
            assert!(wrong.why.contains(why), "{}: {}", bad.escape_ascii(), wrong.why);
        }
        assert_eq!(why_not(b"all:64+large+my-cache+malloc+300000"), None);
        assert!(is_check(b"leak:64") && is_check(b"poison") && !is_check(b"thp"));
        assert_eq!(targets_in(b"audit:48+large"), Some(&b"48+large"[..]));
    }
}
