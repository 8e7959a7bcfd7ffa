//! The option `debug=CHECKS[:TARGETS]`: check names with commas; targets with `+`: sizes in bytes
//! (their class), `large`, `malloc` (all of these), caches' names. Without targets all.
//!
//! **Unsafe.** Keeps the log, made once, for all to read.

use crate::audit::{Entry, Log};
use crate::sample::Sample;
use crate::{Kit, Process};
use core::cell::UnsafeCell;
use core::mem::{MaybeUninit, offset_of};
use core::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, AtomicU64, Ordering, Ordering::Relaxed};
use craton_base::Table;
use craton_heap::size_class::{CLASSES, MAX_CLASSED, class_of, size_of_class};
use craton_objects::caches::name;
use craton_os::fault::{self, Fault};
use craton_os::{Line, Mutex, Rank, mapping, process};
use craton_tables::amount::decimal;

pub(crate) const AUDIT: u16 = 1;
pub(crate) const REDZONE: u16 = 2;
pub(crate) const POISON: u16 = 4;
pub(crate) const VERIFY: u16 = 8;
pub(crate) const GUARD: u16 = 16;
pub(crate) const UNMAP: u16 = 32;
pub(crate) const LEAK: u16 = 64;
pub(crate) const SAMPLED: u16 = 128;
pub(crate) const MISMATCH: u16 = 256;

const NAMES: [(&[u8], u16); 9] = [
    (b"audit", AUDIT),
    (b"redzone", REDZONE),
    (b"poison", POISON),
    (b"verify", VERIFY),
    (b"guard", GUARD),
    // Only separate pages can be closed.
    (b"unmap", UNMAP | GUARD),
    (b"leak", LEAK),
    (b"mismatch", MISMATCH),
    (b"all", AUDIT | REDZONE | POISON | VERIFY | GUARD | UNMAP | LEAK | MISMATCH),
];

const TEXT_MAX: usize = 256;
/// The default of `audit_log`.
const LOG_ENTRIES: u32 = 1 << 16;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wrong<'a> {
    pub part: &'a [u8],
    pub why: &'static str,
}

impl From<&'static str> for Wrong<'_> {
    fn from(why: &'static str) -> Self {
        Self { part: b"", why }
    }
}

pub(crate) struct Setting {
    /// 0: objects above all classes.
    checks: [AtomicU16; CLASSES + 1],
    ever: AtomicU16,
    caches: AtomicU16,
    /// Objects were freed by size alone: those in thread caches cannot be checked.
    trusts: AtomicBool,
    log_made: AtomicBool,
    /// Exclusive-or the default.
    log_entries: AtomicU32,
    text: Mutex<([u8; TEXT_MAX], usize)>,
    /// The text's lock guards it.
    met: AtomicU64,
    log: UnsafeCell<MaybeUninit<Log>>,
}

// SAFETY: `log` is written once, under a lock, before `log_made`; the rest is atomic or locked.
unsafe impl Sync for Setting {}

impl Setting {
    pub(crate) const LOG: [usize; 2] = [offset_of!(Self, log), offset_of!(Self, log_made)];

    pub(crate) const fn new() -> Self {
        Self {
            checks: [const { AtomicU16::new(0) }; CLASSES + 1],
            ever: AtomicU16::new(0),
            caches: AtomicU16::new(0),
            trusts: AtomicBool::new(false),
            log_made: AtomicBool::new(false),
            log_entries: AtomicU32::new(0),
            text: Mutex::ranked(Rank::KitSetting, ([0; TEXT_MAX], 0)),
            met: AtomicU64::new(0),
            log: UnsafeCell::new(MaybeUninit::zeroed()),
        }
    }

    #[inline]
    pub(crate) fn checks_of_class(&self, class: usize) -> u16 {
        self.checks[class].load(Relaxed)
    }

    #[inline]
    pub(crate) fn checks_of_size(&self, size: usize) -> u16 {
        self.checks_of_class(if size <= MAX_CLASSED { class_of(size) } else { 0 })
    }

    pub(crate) fn checks_of_cache(&self, name: &[u8]) -> u16 {
        let all = self.caches.load(Relaxed);
        if all == 0 {
            return 0;
        }
        let text = self.text.lock();
        let Some(targets) = targets_in(&text.0[..text.1]) else { return all };
        match targets.split(|b| *b == b'+').position(|target| target == name) {
            Some(i) => {
                self.met.fetch_or(1 << (i % 64), Relaxed);
                all
            }
            None => 0,
        }
    }

    /// Visits those of the first 64 targets for which no cache was made.
    fn each_unmet(&self, mut each: impl FnMut(&[u8])) {
        if self.caches.load(Relaxed) == 0 {
            return;
        }
        let text = self.text.lock();
        let met = self.met.load(Relaxed);
        let targets = targets_in(&text.0[..text.1]).unwrap_or_default().split(|b| *b == b'+').take(64);
        for (_, name) in
            targets.enumerate().filter(|(i, target)| met >> i & 1 == 0 && name::is_name(target) && !target.is_empty())
        {
            each(name);
        }
    }

    pub(crate) fn print_unmet(&self) {
        self.each_unmet(|name| {
            let line = Line::new().text("craton: option \"debug\": no object cache \"").bytes(name);
            line.text("\" was made since it was set, so that nothing was checked of it").print();
        });
    }

    pub(crate) fn unmet(&self) -> u64 {
        let mut count = 0;
        self.each_unmet(|_| count += 1);
        count
    }

    /// There may be buffers on the heap.
    pub(crate) fn ever_checks(&self) -> bool {
        self.ever.load(Relaxed) != 0
    }

    /// Any buffer may be on separate pages.
    pub(crate) fn guards(&self) -> bool {
        self.ever.load(Relaxed) & GUARD != 0
    }

    pub(crate) fn verifies(&self) -> bool {
        self.ever.load(Relaxed) & (VERIFY | AUDIT) != 0
    }

    pub(crate) fn searches_leaks(&self) -> bool {
        self.ever.load(Relaxed) & LEAK != 0
    }

    pub(crate) fn log(&self) -> Option<&Log> {
        // ORDERING: pairs with the Release in `make_log`. SAFETY: initialized for good.
        if self.log_made.load(Ordering::Acquire) { Some(unsafe { (*self.log.get()).assume_init_ref() }) } else { None }
    }

    pub(crate) fn log_range(&self) -> (usize, usize) {
        self.log().map_or((0, 0), |log| (log.address(), self.log_entries() as usize * size_of::<Entry>()))
    }

    pub(crate) fn trust(&self) {
        if !self.trusts.load(Relaxed) {
            self.trusts.store(true, Relaxed);
        }
    }

    fn wanted<'a>(&self, value: &'a [u8]) -> Result<Wanted, Wrong<'a>> {
        let wanted = Wanted::of(value)?;
        if self.trusts.load(Relaxed) && wanted.checks != 0 {
            return Err(
                "this program frees objects by their sizes alone (Rust's global allocator): it can be set at the start only, by CRATON_OPTIONS; ignored".into(),
            );
        }
        Ok(wanted)
    }

    pub(crate) fn check<'a>(&self, value: &'a [u8]) -> Result<bool, Wrong<'a>> {
        self.wanted(value).map(|wanted| wanted.checks != 0)
    }

    /// `None`: wrong; else whether anything changed.
    pub(crate) fn set(&self, value: &[u8]) -> Option<bool> {
        let Wanted { checks, classes, caches } = self.wanted(value).ok()?;
        let mut text = self.text.lock();
        if text.0[..text.1] == *value {
            return Some(false);
        }
        if checks & AUDIT != 0 {
            self.make_log();
        }
        text.0[..value.len()].copy_from_slice(value);
        text.1 = value.len();
        self.met.store(0, Relaxed);
        self.ever.fetch_or(checks, Relaxed);
        for (kept, checks) in self.checks.iter().zip(classes) {
            kept.store(checks, Relaxed);
        }
        self.caches.store(caches, Relaxed);
        Some(true)
    }

    pub(crate) fn show(&self, show: impl FnOnce(&[u8])) {
        let text = self.text.lock();
        show(if text.1 == 0 { b"none" } else { &text.0[..text.1] });
    }

    /// Before the log is made.
    pub(crate) fn set_log_entries(&self, value: &[u8]) -> bool {
        let entries = decimal(value).filter(|n| (1..=1 << 28).contains(n));
        match entries {
            Some(n) if !self.log_made.load(Relaxed) => self.log_entries.store(n as u32 ^ LOG_ENTRIES, Relaxed),
            Some(n) => return n == self.log_entries(),
            None => return false,
        }
        true
    }

    pub(crate) fn log_entries(&self) -> u64 {
        (self.log_entries.load(Relaxed) ^ LOG_ENTRIES).into()
    }

    /// Under the text's lock.
    fn make_log(&self) {
        if self.log_made.load(Relaxed) {
            return;
        }
        let entries = self.log_entries() as usize;
        if let Some(at) = mapping::map(entries * size_of::<Entry>(), align_of::<Entry>()) {
            // SAFETY: the log's mapping for ever; zeros are valid; no reader yet.
            unsafe { (*self.log.get()).write(Log::new(Table::new(at as *mut Entry, entries), entries)) };
            // ORDERING: pairs with the Acquire in `log`.
            self.log_made.store(true, Ordering::Release);
        }
    }

    pub(crate) fn lock_for_fork(&self, nested: bool) {
        self.text.lock_for_fork(nested);
    }

    /// # Safety
    /// As [`Mutex::release_after_fork`].
    pub(crate) unsafe fn release_after_fork(&self) {
        // SAFETY: by the contract.
        unsafe { self.text.release_after_fork() };
    }
}

impl<P: Process> Kit<P> {
    pub fn checks_of_cache(&self, name: &[u8]) -> u16 {
        self.setting.checks_of_cache(name)
    }

    #[inline]
    pub fn checks_of_class(&self, class: usize) -> u16 {
        self.setting.checks_of_class(class)
    }

    /// Samples lie elsewhere.
    #[inline]
    pub fn may_be_on_heap(&self) -> bool {
        self.setting.ever_checks()
    }

    /// The program frees by size alone: `debug` can then be set at the start only.
    pub fn trust(&self) {
        self.setting.trust();
    }

    pub fn check_option<'a>(&self, value: &'a [u8]) -> Result<bool, Wrong<'a>> {
        self.setting.check(value)
    }

    /// `None`: a wrong value; else whether anything changed. `on_fault` gets each later fault.
    pub fn set_option(&self, value: &[u8], on_hugepages: bool, on_fault: fn(&Fault)) -> Option<bool> {
        let checks = self.setting.check(value).ok()?;
        self.table.set_huge(on_hugepages);
        let changed = self.setting.set(value)?;
        if changed && checks {
            self.turn_on(on_fault);
        }
        Some(changed)
    }

    pub fn show_option(&self, show: impl FnOnce(&[u8])) {
        self.setting.show(show);
    }

    pub fn allows_sample(&self, every: u64) -> bool {
        Sample::allows(every)
    }

    pub fn set_sample(&self, every: u64) {
        self.sample.set(every);
    }

    pub fn sample(&self) -> u64 {
        self.sample.every()
    }

    /// `false`: wrong, or the log is made already.
    pub fn set_log_entries(&self, value: &[u8]) -> bool {
        self.setting.set_log_entries(value)
    }

    pub fn log_entries(&self) -> u64 {
        self.setting.log_entries()
    }

    pub fn set_quarantine(&self, bytes: usize) {
        self.quarantine.set_limit(bytes);
    }

    pub fn quarantine(&self) -> usize {
        self.quarantine.limit()
    }

    pub fn turn_on(&self, on_fault: fn(&Fault)) {
        // Once: redzones keep their bytes.
        let _ = self.secret.compare_exchange(0, process::random_seed() | 1, Relaxed, Relaxed);
        self.in_use.store(true, Relaxed);
        fault::install(on_fault);
    }
}

fn targets_in(value: &[u8]) -> Option<&[u8]> {
    value.iter().position(|b| *b == b':').map(|i| &value[i + 1..])
}

fn checks_in(value: &[u8]) -> Result<u16, Wrong<'_>> {
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

pub fn is_check(word: &[u8]) -> bool {
    let word = word.split(|b| *b == b':').next().unwrap_or_default();
    NAMES.iter().any(|(name, _)| *name == word)
}

const NO_PAIRS: &str = "is no size, nor large or malloc, and mismatch checks only what these serve: caches have one function each; ignored";
const NO_CHECK: &str = "is no check (checks: audit, redzone, poison, verify, guard, unmap, leak, mismatch, all, none; targets follow a colon, with + between them); ignored";

struct Wanted {
    checks: u16,
    classes: [u16; CLASSES + 1],
    caches: u16,
}

impl Wanted {
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
                size if size.iter().all(u8::is_ascii_digit) => match decimal(size) {
                    Some(size) if size as usize <= MAX_CLASSED => this.classes[class_of(size as usize)] = checks,
                    Some(size) if size <= isize::MAX as u64 => this.classes[0] = checks,
                    _ => return Err(wrong("is larger than any object; ignored")),
                },
                number if name::is_number(number) => {
                    return Err(wrong("is no size: give bytes as a plain number; ignored"));
                }
                cache if name::is_name(cache) && checks == MISMATCH => return Err(wrong(NO_PAIRS)),
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

pub(crate) fn class_bytes(size: usize) -> Option<usize> {
    (size <= MAX_CLASSED).then(|| size_of_class(class_of(size)))
}

#[cfg(all(test, not(loom)))]
mod tests;
