//! `craton trace`: a recorded trace in another form.
//!
//! **Failure.** Status 1 for a bad trace, with the offset, or a file that cannot be written.

mod parquet;
mod thrift;

use crate::args::{self, TraceTask};
use crate::failure::Failure;
use crate::output::put;
use crate::replay::{notes, parse, read};
use crate::terminal::say;
use craton_base::{Density, PAGE_SIZE};
use craton_lab::replay::{Event, Kind, Trace};
use parquet::{Column, GROUP_ROWS, Values, Writer};
use std::io;
use std::process::ExitCode;

/// By [`Kind`]'s number, from 1.
const KINDS: [&str; 3] = ["alloc", "free", "resize"];

pub fn trace(args: &args::Trace) -> Result<ExitCode, Failure> {
    let TraceTask::Export { trace: path, parquet: to } = &args.task;
    let file = read(path)?;
    let trace = parse(path, &file)?;
    put("--parquet", to, &table(&trace).map_err(|e| format!("cannot compress the columns: {e}"))?)?;
    say(&notes(&trace));
    Ok(ExitCode::SUCCESS)
}

/// The columns that docs/trace.md describes.
fn table(trace: &Trace<'_>) -> io::Result<Vec<u8>> {
    let mut writer = Writer::new(&columns(&[]));
    let mut events = trace.events();
    loop {
        let group: Vec<Event> = events.by_ref().take(GROUP_ROWS).collect();
        if group.is_empty() {
            break;
        }
        writer.group(&columns(&group))?;
    }
    let known = |n: Option<u64>| n.map_or("unknown".to_owned(), |n| n.to_string());
    Ok(writer.finish(&[
        ("craton.page_bytes", &PAGE_SIZE.to_string()),
        ("craton.dropped_events", &known(trace.dropped())),
        ("craton.unchecked_events", &trace.unchecked().to_string()),
    ]))
}

fn columns(events: &[Event]) -> [Column; 6] {
    let numbers = |of: fn(&Event) -> u32| Values::Numbers(events.iter().map(of).collect());
    let times = events.iter().map(|event| event.time_us as i64).collect();
    let kinds = events.iter().map(|event| event.kind as u8 - Kind::Alloc as u8).collect();
    let dense = events.iter().map(|event| event.density == Density::Dense).collect();
    [
        Column { name: "time_us", values: Values::Sorted(times) },
        Column { name: "kind", values: Values::Words(kinds, &KINDS) },
        Column { name: "first_page", values: numbers(|event| event.span.first.0) },
        Column { name: "pages", values: numbers(|event| event.span.len.0) },
        Column { name: "align_pages", values: numbers(|event| event.align.0) },
        Column { name: "dense", values: Values::Flags(dense) },
    ]
}

#[cfg(test)]
mod tests;
