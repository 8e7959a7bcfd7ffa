//! The options `debug` and `guard_sample` in the process.

use crate::govern;
use crate::options::wrong::Wrong;
use crate::statics::{HEAP, KIT, PROCESSOR_CACHES};
use crate::thread::nested;
use craton_os::fault::Fault;

fn on_fault(fault: &Fault) {
    // The kit holds its locks, and the fault concerns no buffer.
    if !nested::is_nested() {
        nested::within(|| KIT.on_fault(&HEAP, fault));
    }
}

pub(crate) fn why_not(value: &[u8]) -> Option<Wrong<'_>> {
    KIT.check_option(value).err().map(|wrong| Wrong { part: wrong.part, why: wrong.why })
}

/// `false` if the value is wrong or too late.
pub(crate) fn set(value: &[u8], set_up: impl FnOnce() -> bool) -> bool {
    let Ok(checks) = KIT.check_option(value) else { return false };
    if checks && !set_up() {
        return false;
    }
    match KIT.set_option(value, HEAP.backs_huge(), on_fault) {
        None => return false,
        Some(false) => return true,
        Some(true) => {}
    }
    // Threads close these lists in their next slow path.
    govern::request_flushes();
    // Per-CPU caches cannot: flush them before the first buffer.
    if checks {
        nested::within(|| PROCESSOR_CACHES.empty(&HEAP));
    }
    true
}

pub(crate) fn set_sample(every: u64, set_up: impl FnOnce() -> bool) -> bool {
    if !KIT.allows_sample(every) || every > 0 && !set_up() {
        return false;
    }
    KIT.set_sample(every);
    true
}

#[cold]
pub(super) fn turn_on() {
    KIT.turn_on(on_fault);
}
