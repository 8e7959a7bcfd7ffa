//! Statistics as text: a table for people, a line of JSON for tools.

use crate::caches;
use crate::debug;
use crate::front::HEAP;
use crate::heaps::api;
use crate::options;
use crate::segment::{SEGMENT, Segment};
use crate::size_class::{self, CLASSES};
use core::sync::atomic::Ordering::Relaxed;
use craton_os::{Line, file_map, process};

/// The process's numbers, with every refill counted.
pub fn counted() -> &'static Segment {
    HEAP.report_refills();
    &SEGMENT
}

/// Prints the process's statistics on a file descriptor.
pub fn print(fd: i32) {
    Line::new().text("craton: statistics of process ").number(process::id().into()).write_to(fd);
    for (name, value) in counted().numbers().into_iter().skip(1) {
        Line::new().text("  ").text(name).text(" ").number(value).write_to(fd);
    }
    for (key, name) in SEGMENT.names() {
        Line::new().text("  ").text(key).text(" ").text(name).write_to(fd);
    }
    Line::new().text("  object_bytes  slabs  objects_out  refills  objects_refilled  morphed  settled").write_to(fd);
    for class in 1..=CLASSES {
        let s = HEAP.class_stats(class);
        if s.refills > 0 {
            Line::new()
                .text("  ")
                .number(size_class::size_of_class(class) as u64)
                .text(" ")
                .number(s.slabs.into())
                .text(" ")
                .number(s.objects_out)
                .text(" ")
                .number(s.refills)
                .text(" ")
                .number(s.objects_refilled)
                .text(" ")
                .number(s.morphed.into())
                .text(" ")
                .number(s.settled.into())
                .write_to(fd);
        }
    }
    let mut first = true;
    api::each(|heap| {
        if core::mem::take(&mut first) {
            Line::new().text("  heap  name  objects  object_bytes  used_bytes  held_bytes").write_to(fd);
        }
        let len = heap.name.iter().position(|b| *b == 0).unwrap_or(heap.name.len());
        let mut line = Line::new().text("  ").number(heap.id).text(" \"").bytes(&heap.name[..len]).text("\"");
        for number in [heap.objects, heap.object_bytes, heap.used_bytes, heap.held_bytes] {
            line = line.text(" ").number(number);
        }
        line.write_to(fd);
    });
    print_caches(fd);
    if debug::in_use() {
        for (key, value) in debug::counts().numbers() {
            Line::new().text("  debug ").text(key).text(" ").number(value).write_to(fd);
        }
    }
}

/// Prints the counts of object caches, a line for each.
fn print_caches(fd: i32) {
    let mut first = true;
    caches::api::each(|cache| {
        if core::mem::take(&mut first) {
            let keys = cache.numbers().iter().fold(Line::new().text("  cache  name"), |l, (key, _)| match *key {
                "id" => l,
                key => l.text("  ").text(key),
            });
            keys.write_to(fd);
        }
        let line = Line::new().text("  ").number(cache.id).text(" \"").text(cache.name()).text("\"");
        cache.numbers().iter().skip(1).fold(line, |l, (_, value)| l.text(" ").number(*value)).write_to(fd);
    });
}

/// The line of JSON for `stats_file`.
fn json() -> Line {
    let mut name = [0u8; 16];
    let len = process::name(&mut name);
    // A program can call itself anything; what JSON would have to escape becomes a question mark.
    for byte in &mut name[..len] {
        if matches!(*byte, b'"' | b'\\' | 0..=31 | 127..) {
            *byte = b'?';
        }
    }
    let mut line = Line::new().text("{\"exe\":\"").bytes(&name[..len]).text("\"");
    for (key, value) in counted().numbers() {
        line = line.text(",\"").text(key).text("\":").number(value);
    }
    for (key, name) in SEGMENT.names() {
        line = line.text(",\"").text(key).text("\":\"").text(name).text("\"");
    }
    line.text("}")
}

/// What the options ask for at a normal exit.
pub(crate) fn at_exit() {
    if options::STATS.load(Relaxed) {
        print(options::STATS_TO.load(Relaxed));
    }
    let file = options::STATS_FILE.lock();
    if file.1 > 0 {
        let line = json();
        let mut text = [0u8; Line::CAPACITY];
        let n = line.as_bytes().len();
        text[..n].copy_from_slice(line.as_bytes());
        text[n] = b'\n';
        if !process::append_to_file(&file.0[..=file.1], &text[..=n]) {
            let why = file_map::reason(process::errno()).unwrap_or("an error of the system");
            let line = Line::new().text("craton: stats_file: cannot append to ").bytes(&file.0[..file.1]);
            line.text(": ").text(why).write_to(options::STATS_TO.load(Relaxed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::Segment;

    #[test]
    fn the_largest_numbers_fit_into_a_line() {
        let marks = "{\"exe\":\"\"}".len() + 16;
        let numbers: usize = SEGMENT.numbers().iter().map(|(key, _)| key.len() + ",\"\":".len() + 20).sum();
        let names: usize = SEGMENT.names().iter().map(|(key, _)| key.len() + ",\"\":\"\"".len() + 20).sum();
        assert!(marks + numbers + names < Line::CAPACITY, "{}", marks + numbers + names);
    }

    #[test]
    fn a_code_has_a_name_also_where_it_is_new() {
        let segment = Segment::new();
        assert_eq!(segment.names().map(|(_, name)| name), ["none", "not-read", "temeraire"]);
        segment.cache_mode.store(2, Relaxed);
        segment.memory_limit_source.store(4, Relaxed);
        assert_eq!(segment.names().map(|(_, name)| name), ["compact-numbers", "option", "temeraire"]);
        segment.memory_limit_source.store(5, Relaxed);
        assert_eq!(segment.names()[1], ("memory_limit_source_name", "unknown"));
    }
}
