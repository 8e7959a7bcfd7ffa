//! A sentence about each process that ended without `exit`.

use super::unserved::Main;
use crate::profile::{lines_of, table};
use crate::terminal::plain;
use craton_inspect::{Published, Stacks};
use craton_lab::format::{bytes, count, plural};
use craton_os::cgroup::Events;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

const OTHERS: usize = 5;

pub fn sentences(left: &[Published], main: &Main, status: ExitStatus, events: Events) -> String {
    let mut others: Vec<&Published> = left.iter().filter(|p| p.pid != main.pid).collect();
    others.sort_by_key(|p| std::cmp::Reverse(p.heap_bytes()));
    let how = |p: &Published| match (p.pid == main.pid).then(|| status.signal()).flatten() {
        Some(signal) => format!("ended by {}{}", signal_name(signal), cause(signal, events)),
        None if p.pid == main.pid => "ended by _exit".to_owned(),
        None if craton_inspect::is_running(p.pid) => "still runs".to_owned(),
        None => format!("ended by a signal, _exit or exec{}", cause(libc::SIGKILL, events)),
    };
    // The sentence about a lost one is another.
    let first = left.iter().filter(|p| p.pid == main.pid && !main.is_lost(p));
    let told = first.chain(others.iter().copied().take(OTHERS));
    let mut text: String =
        told.map(|p| format!("craton: process {} ({}) {}: {}\n", p.pid, plain(&p.exe), how(p), contents(p))).collect();
    if let more @ 1.. = others.len().saturating_sub(OTHERS) {
        text += &format!(
            "craton: {} did not end by exit either: the table has more\n",
            plural(more as u64, "other process")
        );
    }
    text
}

fn cause(signal: i32, events: Events) -> String {
    let times = |n: u64| if n == 1 { "once".to_owned() } else { format!("{} times", count(n)) };
    match (signal, events) {
        (libc::SIGKILL, Events { limit_bytes: Some(limit), reached: reached @ 1.., .. }) => {
            format!(" (the control group's limit of {} was reached {})", bytes(limit), times(reached))
        }
        _ => String::new(),
    }
}

/// With the objects that most of the heap is for, and with the function that holds most by the
/// profile.
pub fn contents(p: &Published) -> String {
    let heap = p.heap_bytes();
    let in_slabs: u64 = p.classes.iter().map(|class| class.memory_bytes).sum();
    let large = p.number("heap_in_use_bytes").saturating_sub(in_slabs);
    let largest = p.classes.iter().max_by_key(|class| class.memory_bytes).filter(|class| class.memory_bytes > 0);
    let most = match largest {
        _ if p.number("huge_bytes") * 2 > heap => format!(", {} in huge objects", bytes(p.number("huge_bytes"))),
        Some(class) if class.memory_bytes >= large => {
            let live = class.objects_out * class.object_bytes;
            format!(", {} in objects of {} bytes", bytes(live.min(heap)), count(class.object_bytes))
        }
        // Without a copy of the classes the rest is unknown.
        _ if p.number("large_allocs") > 0 => format!(", {} in objects above 128 KiB", bytes(large)),
        _ => String::new(),
    };
    let holder = match holder(p) {
        Some((function, percent)) if percent > 50 => format!(", most from {function}"),
        Some((function, percent)) => format!(", {percent} % from {function}"),
        None => String::new(),
    };
    format!("heap {}{most}{holder}", bytes(heap))
}

fn holder(p: &Published) -> Option<(String, u64)> {
    let profile = p.profile()?;
    table::holder(&Stacks::of(&profile, &mut lines_of(&profile)))
}

pub fn signal_name(signal: i32) -> String {
    const NAMES: [&str; 32] = [
        "0", "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM",
        "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF",
        "WINCH", "IO", "PWR", "SYS",
    ];
    let name = usize::try_from(signal).ok().and_then(|signal| NAMES.get(signal));
    name.map_or_else(|| format!("signal {signal}"), |name| format!("SIG{name}"))
}

#[cfg(test)]
mod tests;
