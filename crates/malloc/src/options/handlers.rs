//! A handler for each option of the table. [`set`] parses a value by the row's form, [`show`]
//! writes it. The match in [`handler`] is exhaustive.
//!
//! **Failure.** A value of another form, or refused, changes nothing.

use crate::debug;
use crate::govern;
use crate::govern::background::Mode;
use crate::observe::recording;
use crate::observe::text::Text;
use crate::observe::trace::PATH_MAX;
use crate::profile;
use crate::start::set_up;
use crate::statics::{
    ADMISSION, BACKGROUND, DEBUG_FILE, HARDENING, HEAP, KIT, PAGE_HEAP, PROCESSOR_CACHES, PROFILE, PROFILE_FILE,
    SHARED, STATS, STATS_FILE, STATS_TO,
};
use crate::thread::admission::CachesFor;
use core::sync::atomic::Ordering::Relaxed;
use craton_os::{Line, label, precise_ns, process};
use craton_pages::{AUTO_RATE, HugeBacking, PageHeapExt};
use craton_tables::amount::{decimal, size};
use craton_tables::options::{Form, Key};

enum Handler {
    /// By the index of its word in the row.
    Word(fn(usize) -> bool, fn() -> usize),
    Number(fn(u64) -> bool, fn() -> u64),
    Any(fn(u64), fn() -> u64),
    /// As text that the mechanism parses and writes.
    Text(fn(&[u8]) -> bool, fn(&mut Text<'_>)),
}

fn handler(key: Key) -> Handler {
    use Handler::{Any, Number, Text, Word};
    match key {
        Key::AuditLog => Text(|v| KIT.set_log_entries(v), |t| _ = t.number(KIT.log_entries())),
        Key::Background => Word(
            |i| {
                govern::set_mode(MODES[i]);
                true
            },
            || govern::mode() as usize,
        ),
        Key::Caches => Word(set_caches, || ADMISSION.caches_for() as usize),
        Key::Debug => Text(|v| debug::set(v, set_up), |t| KIT.show_option(|text| _ = t.bytes(text))),
        Key::DebugFile => Text(|v| DEBUG_FILE.set(v), |t| DEBUG_FILE.show(t)),
        Key::GuardSample => Text(set_sample, |t| {
            let every = KIT.sample();
            _ = if every == debug::AUTO { t.text("auto") } else { t.number(every) };
        }),
        Key::Hardened => Word(|i| HARDENING.set(i == 1), || HARDENING.is_on().into()),
        Key::HardLimit => Text(|v| govern::set_option(b"hard_limit", v), |t| _ = govern::show_option(b"hard_limit", t)),
        Key::MemoryLimit => {
            Text(|v| govern::set_option(b"memory_limit", v), |t| _ = govern::show_option(b"memory_limit", t))
        }
        Key::NameMappings => Word(
            |i| {
                label::turn(i == 1);
                true
            },
            || label::is_on().into(),
        ),
        Key::PageHeap => Text(|v| PAGE_HEAP.set(v), |t| _ = t.text(PAGE_HEAP.name())),
        Key::Pressure => Text(|v| govern::set_option(b"pressure", v), |t| _ = govern::show_option(b"pressure", t)),
        Key::Profile => Text(set_profile, |t| {
            _ = match PROFILE.pace.asked() {
                profile::AUTO => t.text("auto"),
                0 => t.text("off"),
                bytes => t.number(bytes),
            };
        }),
        Key::ProfileEvery => Text(set_profile_every, |t| show_or_off(t, PROFILE.due.every_ns() / SECOND_NS)),
        Key::ProfileGrowth => Text(set_profile_growth, |t| show_or_off(t, PROFILE.due.growth())),
        Key::ProfileFile => Text(|v| PROFILE_FILE.set(v), |t| PROFILE_FILE.show(t)),
        Key::Quarantine => Any(|n| KIT.set_quarantine(n as usize), || KIT.quarantine() as u64),
        Key::ReleaseRate => Text(set_rate, |t| {
            let rate = BACKGROUND.rate();
            _ = if rate == AUTO_RATE { t.text("auto") } else { t.number(rate) };
        }),
        Key::SoftLimit => Text(|v| govern::set_option(b"soft_limit", v), |t| _ = govern::show_option(b"soft_limit", t)),
        Key::Stats => Word(set_stats, || STATS.load(Relaxed).into()),
        Key::StatsDir => Text(|v| SHARED.set(v), |t| SHARED.show(t)),
        Key::StatsFile => Text(set_stats_file, |t| {
            let file = STATS_FILE.lock();
            t.bytes(&file.0[..file.1]);
        }),
        Key::Thp => Word(set_backing, backing),
        Key::ThreadCache => Any(|n| ADMISSION.set_cache_bytes(n as usize), || ADMISSION.cache_bytes() as u64),
        Key::Trace => Text(recording::request, |t| _ = recording::show_path(t)),
        Key::TraceEvents => Number(|n| recording::set_bound(n as usize), recording::bound),
    }
}

pub(super) fn set(key: Key, value: &[u8], may_wait: bool) -> bool {
    let form = &key.row().form;
    let word = form.words().iter().position(|word| word.as_bytes() == value);
    match (handler(key), word) {
        (Handler::Word(..), Some(i)) if key == Key::Background && !may_wait => {
            govern::set_mode_later(MODES[i]);
            true
        }
        (Handler::Word(set, _), Some(i)) => set(i),
        (Handler::Word(..), None) => false,
        (Handler::Number(set, _), _) => number(form, value).is_some_and(set),
        (Handler::Any(set, _), _) => number(form, value).map(set).is_some(),
        (Handler::Text(set, _), _) => set(value),
    }
}

#[cfg(all(test, not(loom)))]
pub(super) fn takes_its_form(key: Key) -> bool {
    let form = &key.row().form;
    match handler(key) {
        Handler::Word(..) => form.others().is_empty(),
        Handler::Number(..) | Handler::Any(..) => form.words().is_empty(),
        Handler::Text(..) => true,
    }
}

pub(super) fn show(key: Key, into: &mut Text<'_>) {
    match handler(key) {
        Handler::Word(_, get) => _ = into.text(key.row().form.words()[get()]),
        Handler::Number(_, get) | Handler::Any(_, get) => _ = into.number(get()),
        Handler::Text(_, show) => show(into),
    }
}

fn number(form: &Form, value: &[u8]) -> Option<u64> {
    match *form {
        Form::Bytes(most) => size(value).filter(|bytes| *bytes <= most),
        Form::Count(_, least, most) => decimal(value).filter(|n| (least..=most).contains(n)),
        _ => None,
    }
}

fn set_rate(value: &[u8]) -> bool {
    let rate = if value == b"auto" { Some(AUTO_RATE) } else { size(value) };
    rate.map(govern::set_rate).is_some()
}

/// In the order of the row's words.
const MODES: [Mode; 3] = [Mode::Off, Mode::Inline, Mode::Thread];

fn set_caches(i: usize) -> bool {
    let caches = [CachesFor::Auto, CachesFor::Threads, CachesFor::Processors][i];
    ADMISSION.set_caches_for(caches);
    if caches == CachesFor::Processors && set_up() && PROCESSOR_CACHES.rseq().is_none() {
        let line =
            Line::new().text("craton: option \"caches=cpu\": restartable sequences are not available, so each thread ");
        line.text("has its own cache").print();
    }
    true
}

fn set_sample(value: &[u8]) -> bool {
    let every = if value == b"auto" { Some(debug::AUTO) } else { decimal(value) };
    every.is_some_and(|every| debug::set_sample(every, set_up))
}

fn set_profile(value: &[u8]) -> bool {
    let bytes = match value {
        b"auto" => Some(profile::AUTO),
        b"off" => Some(0),
        bytes => size(bytes).filter(|bytes| *bytes > 0),
    };
    bytes.is_some_and(|bytes| {
        let is_up = set_up();
        if is_up {
            PROFILE.ask(bytes);
            govern::request_flushes();
        }
        is_up
    })
}

const SECOND_NS: u64 = 1_000_000_000;

fn set_profile_every(value: &[u8]) -> bool {
    let seconds = or_off(value, |value| number(&Key::ProfileEvery.row().form, value));
    seconds.inspect(|seconds| PROFILE.due.set_every(seconds * SECOND_NS, precise_ns())).is_some()
}

fn set_profile_growth(value: &[u8]) -> bool {
    let bytes = or_off(value, |value| size(value).filter(|bytes| *bytes > 0));
    bytes.inspect(|bytes| PROFILE.due.set_growth(*bytes)).is_some()
}

/// A number, or 0 for `off`.
fn or_off(value: &[u8], number: impl FnOnce(&[u8]) -> Option<u64>) -> Option<u64> {
    if value == b"off" { Some(0) } else { number(value) }
}

fn show_or_off(into: &mut Text<'_>, number: u64) {
    _ = if number == 0 { into.text("off") } else { into.number(number) };
}

/// In the order of the row's words.
const BACKINGS: [HugeBacking; 3] = [HugeBacking::AUTO, HugeBacking::ALWAYS, HugeBacking::NEVER];

fn set_backing(i: usize) -> bool {
    // Only a heap that is set up keeps it.
    let is_up = set_up();
    if is_up {
        HEAP.pages().set_backing(BACKINGS[i]);
    }
    is_up
}

fn backing() -> usize {
    if !set_up() {
        return 0;
    }
    let backing = HEAP.pages().backing();
    BACKINGS.iter().position(|b| *b == backing).unwrap_or(0)
}

fn set_stats(i: usize) -> bool {
    if !STATS.swap(i == 1, Relaxed) && i == 1 {
        keep_stderr();
    }
    true
}

fn set_stats_file(path: &[u8]) -> bool {
    if path.len() >= PATH_MAX || path.contains(&0) {
        return false;
    }
    let mut file = STATS_FILE.lock();
    file.0[..path.len()].copy_from_slice(path);
    file.0[path.len()] = 0;
    file.1 = path.len();
    // An unwritable file is reported at exit.
    if !path.is_empty() && !process::can_append(&file.0[..=path.len()]) {
        keep_stderr();
    }
    true
}

/// Programs such as `ls` close standard error before statistics are printed.
fn keep_stderr() {
    if STATS_TO.load(Relaxed) == 2 {
        STATS_TO.store(process::keep_stderr(), Relaxed);
    }
}
