//! A process's memory in words: what to know first.

use crate::metrics::groups;
use crate::processes::Process;
use craton_lab::format::{bytes, plural};

/// RSS and what of it the heap holds; then what could be less.
pub fn sentences(process: &Process) -> Vec<String> {
    let (ledger, groups) = (&process.ledger, groups(&process.ledger));
    let [live, caches, slabs, free, own] = ["live", "caches", "slabs", "free", "own"].map(|name| groups[name]);
    let mut all = vec![format!(
        "{} in memory, of which the heap holds {}: {} in objects, {} free, {} for Craton itself.",
        bytes(ledger.rss_bytes),
        bytes(ledger.heap_bytes),
        bytes(live),
        bytes(caches + slabs + free),
        bytes(own)
    )];
    if caches + slabs + free > 0 {
        all.push(format!(
            "Of the free memory, {} is whole pages, which can go back to the system; {} lies between objects, and {} in \
             caches.",
            bytes(free),
            bytes(slabs),
            bytes(caches)
        ));
    }
    if ledger.swap_bytes > 0 {
        all.push(format!("{} more are in the swap.", bytes(ledger.swap_bytes)));
    }
    all
}

/// Bounds that are near.
pub fn warnings(process: &Process) -> Vec<String> {
    let number = |name: &str| process.page.number(name);
    let in_use = number("heap_in_use_bytes") + number("huge_bytes");
    let mut all = Vec::new();
    for (name, what) in [("hard_limit_bytes", "hard limit"), ("soft_limit_bytes", "soft limit")] {
        let limit = number(name);
        if limit > 0 && in_use > limit / 10 * 9 {
            all.push(format!("The heap uses {} of its {what} of {}.", bytes(in_use), bytes(limit)));
        }
    }
    let (limit, rss) = (number("memory_limit_bytes"), process.ledger.rss_bytes);
    if limit > 0 && rss > limit / 10 * 9 {
        all.push(format!("The process has {} of the {} that its memory limit allows.", bytes(rss), bytes(limit)));
    }
    if number("hard_limit_refused") > 0 {
        all.push(format!("The hard limit has refused {}.", plural(number("hard_limit_refused"), "request")));
    }
    all
}

#[cfg(test)]
mod tests;
