//! The options `trace` and `trace_events`.

use crate::observe::text::Text;
use crate::start::set_up;
use crate::statics::{HEAP, TRACE};
use core::sync::atomic::Ordering::Relaxed;
use craton_os::{Line, file_map};

pub(crate) fn request(path: &[u8]) -> bool {
    TRACE.request(path)
}

pub(crate) fn show_path<'a, 'b>(into: &'a mut Text<'b>) -> &'a mut Text<'b> {
    let path = TRACE.path.lock();
    into.bytes(&path.0[..path.1])
}

pub(crate) fn bound() -> u64 {
    TRACE.bound.load(Relaxed)
}

pub(crate) fn set_bound(events: usize) -> bool {
    if events > 0 {
        TRACE.bound.store(events as u64, Relaxed);
    }
    events > 0
}

/// Ends the one before.
pub(crate) fn begin() {
    let Some((path, len)) = TRACE.requested.lock().take() else { return };
    end();
    if len == 0 || !set_up() {
        return;
    }
    let begun = TRACE.begin(&path[..=len], &HEAP.pages());
    match begun {
        // Children inherit the option while their parent writes the file.
        Ok(()) | Err(file_map::IN_USE) => {}
        Err(problem) => {
            let line = Line::new().text("craton: trace: cannot write ").bytes(&path[..len]).text(": ");
            match file_map::reason(problem) {
                Some(text) => line.text(text),
                None => line.text("error ").number(problem as u64),
            }
            .text("; nothing is recorded")
            .print();
        }
    }
}

pub(crate) fn end() {
    if TRACE.on.load(Relaxed) {
        let _pages = HEAP.pages();
        TRACE.end();
    }
}
