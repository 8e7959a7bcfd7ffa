//! Statistics as one document of JSON (docs/statistics.md). Unused classes are omitted. Lengths may
//! change: a second call's buffer needs spare room.

use crate::caches;
use crate::debug;
use crate::heaps::{OwnStats, api};
use crate::observe::stats::{ClassCounts, counted_with_page_tables};
use crate::observe::text::Text;
use crate::options;
use crate::statics::{HEAPS, PAGE_HEAP, SEGMENT};
use craton_heap::size_class::{CLASSES, size_of_class};
use craton_os::process;

pub const VERSION: u64 = 1;
const VALUE_MAX: usize = 512;

/// As `snprintf`; returns the full length.
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
    fields(out, ",", &counted_with_page_tables().numbers());
    for (key, name) in SEGMENT.names(PAGE_HEAP.name()) {
        out.text(",\"").text(key).text("\":\"").text(name).text("\"");
    }
    out.text(",\"classes\":[");
    let mut first = true;
    ClassCounts::each(|counts| {
        fields(out, open(&mut first), &counts.numbers());
        out.text("}");
    });
    out.text("],\"heaps\":[");
    let mut first = true;
    api::each(|stats| {
        out.text(if core::mem::take(&mut first) { "" } else { "," });
        write_heap(out, &stats);
    });
    out.text("],\"caches\":[");
    let mut first = true;
    caches::api::each(|stats| {
        // Cache names need no escapes.
        out.text(open(&mut first)).text("\"name\":\"").text(stats.name()).text("\"");
        fields(out, ",", &stats.numbers());
        out.text("}");
    });
    out.text("],\"debug\":");
    fields(out, "{", &debug::counts().numbers());
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

fn open(first: &mut bool) -> &'static str {
    if core::mem::take(first) { "{" } else { ",{" }
}

fn fields(out: &mut Text<'_>, before: &str, numbers: &[(&str, u64)]) {
    for (i, (key, value)) in numbers.iter().enumerate() {
        out.text(if i == 0 { before } else { "," }).text("\"").text(key).text("\":").number(*value);
    }
}

fn write_heap(out: &mut Text<'_>, s: &OwnStats) {
    let len = s.name.iter().position(|b| *b == 0).unwrap_or(s.name.len());
    let numbers = s.numbers();
    fields(out, "{", &numbers[..1]);
    out.text(",\"name\":").string(&s.name[..len]);
    fields(out, ",", &numbers[1..]);
    out.text(",\"classes\":[");
    let mut first = true;
    for class in 1..=CLASSES {
        if let Some(s) = HEAPS.class_stats(s.id as u16, class).filter(|s| s.refills > 0) {
            let of_class = [
                ("object_bytes", size_of_class(class) as u64),
                ("slabs", s.slabs.into()),
                ("objects_out", s.objects_out),
            ];
            fields(out, open(&mut first), &of_class);
            out.text("}");
        }
    }
    out.text("]}");
}

#[cfg(all(test, not(loom)))]
mod tests;
