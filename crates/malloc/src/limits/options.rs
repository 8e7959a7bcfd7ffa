//! The options that are limits, and what is said of those that cannot be kept.
//!
//! **Failure.** A value that makes no sense is refused: less than any program needs, or a soft limit above the hard one. A limit below
//! what is in use counts, and one line on standard error says so; as does a hard limit below the soft one, since a program must be able to set
//! it at any time.

use super::{
    HARD, HEAP, Kept, LEAST, MEMORY, PRESSURE, READ, SOFT, Setting, act, amount, apply, read_group, shrink_own, size,
};
use crate::limits::CHANGES;
use crate::text::Text;
use core::sync::atomic::Ordering::Relaxed;
use craton_os::{Line, process};

/// Sets an option; `false` when the value makes no sense, and nothing has changed.
pub(crate) fn set_option(key: &[u8], value: &[u8]) -> bool {
    if key == b"pressure" {
        let Some(percent) = size(value).filter(|p| *p <= 100) else { return false };
        PRESSURE.store(percent as u32, Relaxed);
        return true;
    }
    let Some((kept, setting)) = parse(key, value) else { return false };
    let saved = process::errno();
    if matches!(setting, Setting::Percent(_)) && !READ.load(Relaxed) {
        read_group();
    }
    let taken = why_refused(key, setting).is_none();
    if taken {
        kept.set(setting);
        CHANGES.note();
        let before = (HEAP.gate.soft(), HEAP.gate.hard());
        apply();
        enforce(key, before);
    }
    process::set_errno(saved);
    taken
}

fn parse(key: &[u8], value: &[u8]) -> Option<(&'static Kept, Setting)> {
    let value = if key == b"memory_limit" && value == b"cgroup" { b"auto" } else { value };
    let setting = Setting::parse(value)?;
    match key {
        b"soft_limit" => Some((&SOFT, setting)),
        b"hard_limit" => Some((&HARD, setting)),
        b"memory_limit" if !matches!(setting, Setting::Percent(_)) => Some((&MEMORY, setting)),
        _ => None,
    }
}

/// Why a value that can be understood was not taken.
pub(crate) fn why_not(key: &[u8], value: &[u8]) -> Option<&'static str> {
    parse(key, value).and_then(|(_, setting)| why_refused(key, setting))
}

fn why_refused(key: &[u8], setting: Setting) -> Option<&'static str> {
    let bytes = amount(setting)?;
    let hard = HEAP.gate.hard().filter(|_| key == b"soft_limit");
    if bytes < LEAST {
        Some("too little for any program to run (1M is the least); ignored")
    } else if hard.is_some_and(|hard| bytes > hard) {
        Some("more than the hard limit, so that it would never be reached (set it below that); ignored")
    } else {
        None
    }
}

/// Writes what an option is set to; `false` when it is none of these.
pub(crate) fn show_option(key: &[u8], into: &mut Text<'_>) -> bool {
    match key {
        b"pressure" => into.number(PRESSURE.load(Relaxed).into()),
        b"soft_limit" => SOFT.get().show(into),
        // There is none by itself.
        b"hard_limit" if HARD.get() == Setting::Auto => into.text("none"),
        b"hard_limit" => HARD.get().show(into),
        b"memory_limit" if MEMORY.get() == Setting::Auto => into.text("cgroup"),
        b"memory_limit" => MEMORY.get().show(into),
        _ => return false,
    };
    true
}

/// After the program has set one of the limits, which were so `before`: they count at once.
fn enforce(key: &[u8], before: (Option<u64>, Option<u64>)) {
    if HEAP.gate.hard().is_some_and(|hard| hard < HEAP.used()) {
        shrink_own();
    }
    // What is set again is said again.
    tell_of_hard(before.1.filter(|_| key != b"hard_limit"));
    let soft = HEAP.gate.soft();
    let used = HEAP.used();
    if let Some(limit) = soft.filter(|limit| *limit < used) {
        if key == b"soft_limit" || key == b"memory_limit" && soft != before.0 {
            below("soft_limit", limit, used, "free memory is given back now");
        }
        act();
    }
}

/// Tells of a hard limit that is another than it was `before`, if it is below what is in use or below the soft limit, and gives free
/// memory back for it.
pub(super) fn tell_of_hard(before: Option<u64>) {
    let Some(hard) = HEAP.gate.hard().filter(|hard| Some(*hard) != before) else { return };
    let used = HEAP.used();
    if hard < used {
        below("hard_limit", hard, used, "free memory is given back, and more is refused until enough is freed");
        HEAP.relieve(hard);
    }
    // One that follows from the control group is nobody's mistake.
    if let Some(soft) = HEAP.gate.soft().filter(|soft| hard < *soft && SOFT.get() != Setting::Auto) {
        let line = Line::new().text("craton: hard_limit of ").number(hard).text(" bytes is below the soft_limit of ");
        line.number(soft).text(" bytes, which is never reached now; set that below it, too").print();
    }
}

fn below(what: &str, limit: u64, used: u64, so: &str) {
    let line = Line::new().text("craton: ").text(what).text(" of ").number(limit).text(" bytes is below the ");
    line.number(used).text(" bytes in use; ").text(so).print();
}
