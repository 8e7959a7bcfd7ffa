//! Options: `CRATON_OPTIONS=key=value,key=value`, or set by the program.
//!
//! **What.** `stats=0|1` statistics on standard error at exit · `stats_file=PATH` one line of JSON appended at exit ·
//! `thp=auto|always|never` when hugepages are asked for · `thread_cache=BYTES` what a thread's cache may hold ·
//! `caches=auto|thread|cpu` whether threads or processors have caches of free objects ·
//! `background=0|inline|1` whether the heap is looked after by itself, and whether a thread of the library may do so ·
//! `release_rate=BYTES` how much memory is given back in a second then · `soft_limit=…` from how much memory on it is given back ·
//! `page_heap=temeraire|frames` who says where spans go, at the start only ·
//! `hard_limit=…` how much memory may be had · `memory_limit=cgroup|auto|none|BYTES` what the soft limit follows if it is not set ·
//! `debug=CHECKS[:TARGETS]` what is checked of objects, `audit_log=N` how many transactions are kept, `quarantine=BYTES` how much freed memory waits,
//! `guard_sample=N|auto` one object in so many lies on pages of its own ([`crate::debug`]) ·
//! `pressure=PERCENT` how short of memory the system must be for all to be given back · `trace=PATH` records what is asked of the page heap, `trace_events=N` at most so much of it.
//!
//! **Failure.** An unknown key or a bad value is one line on standard error; the program goes on.
//!
//! **Unsafe.** Reads the environment that the C library passes to constructors.

mod read;

pub use read::{get, name};

use crate::background::{self, Mode};
use crate::front::{CACHES_FOR, CachesFor, HEAP, PROCESSOR_CACHES, THREAD_CACHE_BYTES, set_up};
use crate::{debug, limits, page_heap, trace};
use core::ffi::{CStr, c_char};
use core::sync::atomic::{AtomicBool, AtomicI32, Ordering::Relaxed};
use craton_os::{Decimal, Line, Mutex, process};
use craton_pages::HugeBacking;

/// Longest path that `stats_file` takes, its closing 0 included.
pub(crate) const PATH_MAX: usize = 512;

pub(crate) static STATS: AtomicBool = AtomicBool::new(false);
/// Where statistics go: programs such as `ls` close standard error before we come to write.
pub(crate) static STATS_TO: AtomicI32 = AtomicI32::new(2);
/// The path and its length; an empty one is none.
pub(crate) static STATS_FILE: Mutex<([u8; PATH_MAX], usize)> = Mutex::new(([0; PATH_MAX], 0));

/// Takes the lock of what the options keep, for a fork.
pub(crate) fn hold_for_fork(nested: bool) {
    STATS_FILE.hold_for_fork(nested);
}

/// Gives it up after the fork.
///
/// # Safety
/// As [`Mutex::release_after_fork`].
pub(crate) unsafe fn release_after_fork() {
    // SAFETY: by the contract.
    unsafe { STATS_FILE.release_after_fork() };
}

/// Applies the variable `CRATON_OPTIONS` of an environment.
///
/// # Safety
/// `environment` is null, or an array of C strings ended by null.
pub(crate) unsafe fn from_environment(environment: *const *const c_char) {
    // SAFETY: by the contract.
    if let Some(text) = unsafe { text_in(environment) } {
        apply(text);
        trace::begin();
    }
}

/// Sets the option `debug` as the environment says, before the program has asked for anything.
///
/// # Safety
/// As [`find`].
pub(crate) unsafe fn debug_from_environment(environment: *const *const c_char) {
    // What is wrong with a value is said when all options are read.
    // SAFETY: by the contract.
    unsafe {
        find(environment, b"audit_log", |value| _ = debug::KIT.set_log_entries(value));
        find(environment, b"debug", |value| _ = debug::set(value));
    }
}

/// Calls `each` with every value that an environment has for a key.
///
/// # Safety
/// As [`from_environment`], and nobody changes the environment meanwhile.
pub(crate) unsafe fn find(environment: *const *const c_char, key: &[u8], mut each: impl FnMut(&[u8])) {
    // SAFETY: by the contract.
    let text = unsafe { text_in(environment) }.unwrap_or_default();
    Items(text).filter_map(|option| option.strip_prefix(key)?.strip_prefix(b"=")).for_each(&mut each);
}

/// The variable `CRATON_OPTIONS` of an environment.
///
/// # Safety
/// As [`find`], for as long as the text is used.
unsafe fn text_in<'a>(environment: *const *const c_char) -> Option<&'a [u8]> {
    let mut at = environment;
    // SAFETY: by the contract; the array is not read behind its null.
    while !at.is_null() && unsafe { !(*at).is_null() } {
        // SAFETY: as above, each entry is a C string.
        let entry = unsafe { CStr::from_ptr(*at) }.to_bytes();
        if let Some(text) = entry.strip_prefix(b"CRATON_OPTIONS=") {
            return Some(text);
        }
        // SAFETY: the entry was not the closing null.
        at = unsafe { at.add(1) };
    }
    None
}

/// What is wrong with a setting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Wrong<'a> {
    /// The part of the value that is wrong; empty if it is the whole.
    pub(crate) part: &'a [u8],
    /// Why.
    pub(crate) why: &'static str,
}

impl From<&'static str> for Wrong<'_> {
    fn from(why: &'static str) -> Self {
        Self { part: b"", why }
    }
}

/// The options of a list: what commas separate. Behind `debug=` commas stand between checks, too: what has no `=` goes on with that.
struct Items<'a>(&'a [u8]);

impl<'a> Iterator for Items<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.0.is_empty() {
            return None;
        }
        let comma = |from: usize| self.0[from..].iter().position(|b| *b == b',').map_or(self.0.len(), |i| from + i);
        let mut end = comma(0);
        while self.0.starts_with(b"debug=") && end < self.0.len() {
            let next = comma(end + 1);
            let word = &self.0[end + 1..next];
            if word.contains(&b'=') && !debug::is_check(word) {
                break;
            }
            end = next;
        }
        let item = without_commas(&self.0[..end]);
        self.0 = self.0.get(end + 1..).unwrap_or_default();
        Some(item)
    }
}

/// A text without commas at its end, where a list may have too many.
fn without_commas(mut text: &[u8]) -> &[u8] {
    while let Some(shorter) = text.strip_suffix(b",") {
        text = shorter;
    }
    text
}

/// Applies a list of options, saying on standard error what it does not understand.
fn apply(text: &[u8]) {
    for option in Items(text).filter(|o| !o.is_empty()) {
        if let Err(wrong) = try_setting(option, true) {
            complain(option, wrong);
        }
    }
}

/// Says on standard error what is wrong with a setting.
pub(crate) fn complain(setting: &[u8], wrong: Wrong<'_>) {
    let line = Line::new().text("craton: option \"").bytes(setting).text("\": ");
    let line = if wrong.part.is_empty() { line } else { line.text("\"").bytes(wrong.part).text("\" ") };
    line.text(wrong.why).print();
}

/// Sets what `key=value` says, or tells what is wrong with it; as [`try_set`].
pub(crate) fn try_setting(setting: &[u8], may_wait: bool) -> Result<(), Wrong<'_>> {
    match setting.iter().position(|b| *b == b'=') {
        Some(equals) => try_set(&setting[..equals], &setting[equals + 1..], may_wait),
        None => Err("not of the form key=value; ignored".into()),
    }
}

/// Why a value is not heeded, if there is more to say than of any bad value.
fn why_not<'a>(key: &[u8], value: &'a [u8]) -> Option<Wrong<'a>> {
    if key == b"debug" { debug::why_not(value) } else { limits::why_not(key, value).map(Wrong::from) }
}

/// Sets one option, or says what is wrong with it. Who may not wait for the end of the heap's own thread leaves that to it.
pub(crate) fn try_set<'a>(key: &[u8], value: &'a [u8], may_wait: bool) -> Result<(), Wrong<'a>> {
    if !KEYS.contains(&key) {
        return Err(NO_SUCH_KEY.into());
    }
    let mode = if key == b"background" { mode(value) } else { None };
    let is_set = match mode {
        Some(mode) if !may_wait => {
            background::set_mode_later(mode);
            true
        }
        _ => set(key, value),
    };
    if is_set { Ok(()) } else { Err(why_not(key, value).unwrap_or(bad_value(key).into())) }
}

/// What the option `background` names.
fn mode(value: &[u8]) -> Option<Mode> {
    match value {
        b"0" => Some(Mode::Off),
        b"inline" => Some(Mode::Inline),
        b"1" => Some(Mode::Thread),
        _ => None,
    }
}

const KEYS: [&[u8]; 18] = [
    b"audit_log",
    b"background",
    b"caches",
    b"debug",
    b"guard_sample",
    b"hard_limit",
    b"memory_limit",
    b"page_heap",
    b"pressure",
    b"quarantine",
    b"release_rate",
    b"soft_limit",
    b"stats",
    b"stats_file",
    b"thp",
    b"thread_cache",
    b"trace",
    b"trace_events",
];
const NO_SUCH_KEY: &str = "no such key (there are audit_log, background, caches, debug, guard_sample, hard_limit, memory_limit, page_heap, pressure, quarantine, \
                           release_rate, soft_limit, stats, stats_file, thp, thread_cache, trace, trace_events); ignored";

/// What is said of a bad value.
fn bad_value(key: &[u8]) -> &'static str {
    match key {
        b"soft_limit" | b"hard_limit" => {
            "bad value (there are none, auto, bytes such as 512M, and percent such as 80%); ignored"
        }
        b"memory_limit" => "bad value (there are cgroup, auto, none, and bytes such as 512M); ignored",
        b"page_heap" => {
            "bad value (there are temeraire and frames, as long as there is no heap: say it in the environment); ignored"
        }
        b"debug" => "cannot be set: there is no memory for the heap or for the log; ignored",
        b"audit_log" => "bad value (1 to 268435456 entries, until the log is made); ignored",
        b"guard_sample" => "bad value (0 for none, auto, or one object in so many, up to 1099511627776); ignored",
        b"pressure" => "bad value (0 to 100 percent); ignored",
        b"background" => "bad value (there are 0, inline and 1); ignored",
        b"caches" => "bad value (there are auto, thread and cpu); ignored",
        b"thp" => "bad value (there are auto, always and never); ignored",
        b"stats" => "bad value (there are 0 and 1); ignored",
        b"quarantine" => "bad value (0 to 1T bytes, such as 64M); ignored",
        b"release_rate" | b"thread_cache" => "bad value (bytes, such as 512K); ignored",
        b"trace_events" => "bad value (a number above 0); ignored",
        _ => "bad value (a path of at most 511 bytes); ignored",
    }
}

/// Has what is said at the exit reach standard error as it is now.
fn keep_stderr() {
    if STATS_TO.load(Relaxed) == 2 {
        STATS_TO.store(process::keep_stderr(), Relaxed);
    }
}

/// Sets one option; `false` when the key or the value is not known.
pub(crate) fn set(key: &[u8], value: &[u8]) -> bool {
    match key {
        b"background" => match mode(value) {
            Some(mode) => background::set_mode(mode),
            None => return false,
        },
        b"caches" => {
            let caches = match value {
                b"auto" => CachesFor::Auto,
                b"thread" => CachesFor::Threads,
                b"cpu" => CachesFor::Processors,
                _ => return false,
            };
            CACHES_FOR.store(caches as u8, Relaxed);
            if caches == CachesFor::Processors && set_up() && PROCESSOR_CACHES.rseq().is_none() {
                let line = Line::new()
                    .text("craton: option \"caches=cpu\": threads have no restartable sequences here, so that ");
                line.text("each has a cache of its own").print();
            }
        }
        b"soft_limit" | b"hard_limit" | b"memory_limit" | b"pressure" => return limits::set_option(key, value),
        b"debug" => return debug::set(value),
        b"audit_log" => return debug::KIT.set_log_entries(value),
        b"guard_sample" => {
            let every = if value == b"auto" { Some(debug::AUTO) } else { Decimal::parse(value) };
            return every.is_some_and(debug::set_sample);
        }
        b"quarantine" => match limits::size(value).filter(|bytes| *bytes <= debug::MOST_QUARANTINE) {
            Some(bytes) => debug::KIT.set_quarantine(bytes as usize),
            None => return false,
        },
        b"page_heap" => return page_heap::set(value),
        b"release_rate" => match limits::size(value) {
            Some(bytes) => background::set_rate(bytes),
            None => return false,
        },
        b"stats" => match value {
            b"0" => STATS.store(false, Relaxed),
            b"1" => {
                if !STATS.swap(true, Relaxed) {
                    keep_stderr();
                }
            }
            _ => return false,
        },
        b"stats_file" => {
            if value.len() >= PATH_MAX || value.contains(&0) {
                return false;
            }
            let mut file = STATS_FILE.lock();
            file.0[..value.len()].copy_from_slice(value);
            file.0[value.len()] = 0;
            file.1 = value.len();
            // That it cannot be written is said at the end.
            if !value.is_empty() && !process::can_append(&file.0[..=value.len()]) {
                keep_stderr();
            }
        }
        b"thp" => {
            let backing = match value {
                b"auto" => HugeBacking::AUTO,
                b"always" => HugeBacking::ALWAYS,
                b"never" => HugeBacking::NEVER,
                _ => return false,
            };
            // The heap has its floor before it can be told how to use it.
            if !set_up() {
                return false;
            }
            HEAP.pages().set_backing(backing);
        }
        b"thread_cache" => match limits::size(value) {
            Some(bytes) => THREAD_CACHE_BYTES.store(bytes as usize, Relaxed),
            None => return false,
        },
        b"trace" => return trace::ask(value),
        b"trace_events" => return Decimal::parse(value).is_some_and(|n| trace::set_bound(n as usize)),
        _ => return false,
    }
    true
}
