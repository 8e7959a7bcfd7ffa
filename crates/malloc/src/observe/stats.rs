use crate::caches;
use crate::debug;
use crate::front::{class_failures, class_stats};
use crate::heaps::api;
use crate::observe::segment::{Segment, WORDS};
use crate::observe::text::Text;
use crate::observe::{shared, telemetry};
use crate::statics::{HEAP, PAGE_HEAP, SEGMENT, STATS, STATS_FILE, STATS_TO};
use core::sync::atomic::Ordering::Relaxed;
use craton_heap::size_class::{CLASSES, geometry, size_of_class};
use craton_os::{Line, file_map, process};

/// With all refills, and the page heap's numbers.
pub fn counted() -> &'static Segment {
    HEAP.report_counts();
    telemetry::collect();
    &SEGMENT
}

pub fn counted_with_page_tables() -> &'static Segment {
    telemetry::read_page_tables();
    counted()
}

craton_tables::count_struct! { class,
    pub(crate) struct ClassCounts {}
}

impl ClassCounts {
    pub(crate) fn each(mut each: impl FnMut(&Self)) {
        for (class, s) in (1..=CLASSES).map(|c| (c, class_stats(c))).filter(|(_, s)| s.refills > 0) {
            let ((partial, complete), g) = (HEAP.fullness(class), geometry(class));
            each(&Self {
                object_bytes: size_of_class(class) as u64,
                slabs: s.slabs.into(),
                objects_out: s.objects_out,
                total: u64::from(s.slabs) * u64::from(g.capacity),
                memory_bytes: s.slabs as u64 * g.pages.bytes().0 as u64,
                partial: partial.into(),
                complete: complete.into(),
                full: s.slabs.saturating_sub(partial + complete).into(),
                failures: class_failures(class).into(),
                refills: s.refills,
                objects_refilled: s.objects_refilled,
                morphed: s.morphed.into(),
                settled: s.settled.into(),
            });
        }
    }
}

pub fn print(fd: i32) {
    Line::new().text("craton: statistics of process ").number(process::id().into()).write_to(fd);
    for (name, value) in counted_with_page_tables().numbers().into_iter().skip(1) {
        Line::new().text("  ").text(name).text(" ").number(value).write_to(fd);
    }
    for (key, name) in SEGMENT.names(PAGE_HEAP.name()) {
        Line::new().text("  ").text(key).text(" ").text(name).write_to(fd);
    }
    Line::new().text("  object_bytes  slabs  objects_out  refills  objects_refilled  morphed  settled").write_to(fd);
    ClassCounts::each(|c| {
        let line = Line::new().text("  ").number(c.object_bytes);
        row(line, [c.slabs, c.objects_out, c.refills, c.objects_refilled, c.morphed, c.settled]).write_to(fd);
    });
    let mut first = true;
    api::each(|heap| {
        if core::mem::take(&mut first) {
            Line::new().text("  heap  name  objects  object_bytes  used_bytes  held_bytes").write_to(fd);
        }
        let len = heap.name.iter().position(|b| *b == 0).unwrap_or(heap.name.len());
        let line = Line::new().text("  ").number(heap.id).text(" \"").bytes(&heap.name[..len]).text("\"");
        row(line, [heap.objects, heap.object_bytes, heap.used_bytes, heap.held_bytes]).write_to(fd);
    });
    let mut first = true;
    caches::api::each(|cache| {
        let numbers = &cache.numbers()[1..];
        if core::mem::take(&mut first) {
            let head = Line::new().text("  cache  name");
            numbers.iter().fold(head, |line, (key, _)| line.text("  ").text(key)).write_to(fd);
        }
        let line = Line::new().text("  ").number(cache.id).text(" \"").text(cache.name()).text("\"");
        row(line, numbers.iter().map(|(_, value)| *value)).write_to(fd);
    });
    if debug::in_use() {
        for (key, value) in debug::counts().numbers() {
            Line::new().text("  debug ").text(key).text(" ").number(value).write_to(fd);
        }
    }
}

fn row(line: Line, numbers: impl IntoIterator<Item = u64>) -> Line {
    numbers.into_iter().fold(line, |line, number| line.text(" ").number(number))
}

/// Names of some 20 letters, and numbers of as many digits.
const LINE: usize = 48 * WORDS;

fn json() -> ([u8; LINE], usize) {
    let mut name = [0u8; 16];
    let len = process::name(&mut name);
    // Characters that JSON escapes become question marks.
    for byte in &mut name[..len] {
        if matches!(*byte, b'"' | b'\\' | 0..=31 | 127..) {
            *byte = b'?';
        }
    }
    let mut buffer = [0; LINE];
    let mut line = Text::new(&mut buffer);
    line.text("{\"exe\":\"").bytes(&name[..len]).text("\"");
    for (key, value) in counted_with_page_tables().numbers() {
        line.text(",\"").text(key).text("\":").number(value);
    }
    for (key, name) in SEGMENT.names(PAGE_HEAP.name()) {
        line.text(",\"").text(key).text("\":\"").text(name).text("\"");
    }
    line.text("}\n");
    let len = line.end();
    (buffer, len)
}

pub(crate) fn at_exit() {
    if STATS.load(Relaxed) {
        print(STATS_TO.load(Relaxed));
    }
    let is_set = STATS_FILE.lock().1 > 0;
    if is_set {
        append_to_file();
    }
}

#[cold]
#[inline(never)]
fn append_to_file() {
    // Not under the lock: the page heap's ranks before it, and a listener may take its time.
    let (line, len) = json();
    let file = *STATS_FILE.lock();
    let path = &file.0[..file.1];
    if !process::append_to_file(&file.0[..=file.1], &line[..len]) && !shared::is_of_ended_run(path, process::errno()) {
        let why = file_map::reason(process::errno()).unwrap_or("an error of the system");
        let line = Line::new().text("craton: stats_file: cannot append to ").bytes(path);
        line.text(": ").text(why).write_to(STATS_TO.load(Relaxed));
    }
}

#[cfg(test)]
mod tests;
