//! Statistics as one document of JSON.
//!
//! **State.** Numbers unless quoted; classes that were never used are left out:
//! ```text
//! { version, library: "…", exe: "…", …all of `struct craton_segment`…, cache_mode_name: "…", memory_limit_source_name: "…",
//!   classes: [{ object_bytes, slabs, objects_out, total, memory_bytes, partial, complete, full, failures, refills, objects_refilled, morphed,
//!     settled }],
//!   heaps: [{ id, name: "…", objects, object_bytes, used_bytes, held_bytes, limit_bytes, refused, classes: [{ object_bytes, slabs, objects_out }] }],
//!   caches: [{ name: "…", …all of `struct craton_cache_stats`… }],
//!   debug: { buffers, buffer_bytes, waiting, samples, transactions, transactions_kept, targets_unmet },
//!   options: { "key": "value" } }
//! ```
//!
//! **Threads.** Each number is exact by itself; two may be a moment apart, also in length, so that a buffer for a second call should
//! have some room more.

use crate::caches;
use crate::debug;
use crate::front::HEAPS;
use crate::front::{HEAP, class_failures, class_stats};
use crate::heaps::{OwnStats, api};
use crate::options;
use crate::segment::SEGMENT;
use crate::size_class::{CLASSES, geometry, size_of_class};
use crate::stats::counted;
use crate::text::Text;
use craton_os::process;
use craton_slab::SlabStats;

/// Version of the document.
pub const VERSION: u64 = 1;
/// Bytes of an option's value that the document has at most.
const VALUE_MAX: usize = 512;

/// Writes the document to a buffer as `snprintf` does; returns its whole length.
pub fn write(buffer: &mut [u8]) -> usize {
    let mut text = Text::new(buffer);
    let out = &mut text;
    let mut name = [0u8; 16];
    let len = process::name(&mut name);
    out.text("{\"version\":")
        .number(VERSION)
        .text(",\"library\":\"")
        .text(env!("CARGO_PKG_VERSION"))
        .text("\",\"exe\":");
    out.string(&name[..len]);
    for (key, value) in counted().numbers() {
        number(out, ",", key, value);
    }
    for (key, name) in SEGMENT.names() {
        out.text(",\"").text(key).text("\":\"").text(name).text("\"");
    }
    out.text(",\"classes\":[");
    let mut first = true;
    for (class, s) in (1..=CLASSES).map(|c| (c, class_stats(c))).filter(|(_, s)| s.refills > 0) {
        begin_class(out, &mut first, class, s);
        let ((partial, complete), g) = (HEAP.fullness(class), geometry(class));
        number(out, ",", "total", u64::from(s.slabs) * u64::from(g.capacity));
        number(out, ",", "memory_bytes", s.slabs as u64 * g.pages.bytes().0 as u64);
        number(out, ",", "partial", partial.into());
        number(out, ",", "complete", complete.into());
        number(out, ",", "full", s.slabs.saturating_sub(partial + complete).into());
        number(out, ",", "failures", class_failures(class).into());
        number(out, ",", "refills", s.refills);
        number(out, ",", "objects_refilled", s.objects_refilled);
        number(out, ",", "morphed", s.morphed.into());
        number(out, ",", "settled", s.settled.into());
        out.text("}");
    }
    out.text("],\"heaps\":[");
    let mut first = true;
    api::each(|stats| {
        if !core::mem::take(&mut first) {
            out.text(",");
        }
        write_heap(out, &stats);
    });
    out.text("],\"caches\":[");
    let mut first = true;
    caches::api::each(|stats| {
        out.text(if core::mem::take(&mut first) { "{" } else { ",{" });
        // A cache's name has no character that would have to be escaped.
        out.text("\"name\":\"").text(stats.name()).text("\"");
        stats.numbers().iter().for_each(|(key, value)| number(out, ",", key, *value));
        out.text("}");
    });
    out.text("],\"debug\":{");
    for (i, (key, value)) in debug::counts().numbers().into_iter().enumerate() {
        number(out, if i == 0 { "" } else { "," }, key, value);
    }
    out.text("},\"options\":{");
    let mut i = 0;
    while let Some(key) = options::name(i) {
        let mut value = [0; VALUE_MAX];
        let mut shown = Text::new(&mut value);
        options::get(key.to_bytes(), &mut shown);
        let len = shown.end().min(VALUE_MAX - 1);
        out.text(if i > 0 { "," } else { "" }).string(key.to_bytes()).text(":").string(&value[..len]);
        i += 1;
    }
    out.text("}}");
    text.end()
}

fn number(out: &mut Text<'_>, before: &str, key: &str, value: u64) {
    out.text(before).text("\"").text(key).text("\":").number(value);
}

fn begin_class(out: &mut Text<'_>, first: &mut bool, class: usize, s: SlabStats) {
    number(out, if core::mem::take(first) { "{" } else { ",{" }, "object_bytes", size_of_class(class) as u64);
    number(out, ",", "slabs", s.slabs.into());
    number(out, ",", "objects_out", s.objects_out);
}

fn write_heap(out: &mut Text<'_>, s: &OwnStats) {
    let len = s.name.iter().position(|b| *b == 0).unwrap_or(s.name.len());
    number(out, "{", "id", s.id);
    out.text(",\"name\":").string(&s.name[..len]);
    for (key, value) in [
        ("objects", s.objects),
        ("object_bytes", s.object_bytes),
        ("used_bytes", s.used_bytes),
        ("held_bytes", s.held_bytes),
        ("limit_bytes", s.limit_bytes),
        ("refused", s.refused),
    ] {
        number(out, ",", key, value);
    }
    out.text(",\"classes\":[");
    let mut first = true;
    for class in 1..=CLASSES {
        if let Some(s) = HEAPS.class_stats(s.id as u16, class).filter(|s| s.refills > 0) {
            begin_class(out, &mut first, class, s);
            out.text("}");
        }
    }
    out.text("]}");
}
