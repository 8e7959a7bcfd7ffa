//! `craton core`: the heap of a core file or a running process.
//!
//! **Failure.** Status 1 with the reason; also for leaks and a broken heap.

mod explore;
mod memory;
mod shell;

use crate::args::{self, CoreTask};
use crate::failure::Failure;
use crate::output::{Output, command};
use crate::terminal::{Stream, plain, say};
use craton_inspect::{
    Group, Heap, LeakSite, Leaks, Log, Sampled, Stats, Verdict, dump, histogram, leaks, log, refs, save, stats, users,
    verify, whatis,
};
use craton_lab::document::Document;
use craton_lab::format;
use craton_lab::ratios::Ratios;
use memory::Opener;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::thread::sleep;

/// Without `--all`.
const SHOWN: usize = 20;
/// Stops before a heap counts as broken: a few marks change without a lock.
const DOUBTS: u32 = 3;

pub fn core(args: &args::Core) -> Result<ExitCode, Failure> {
    let (target, exe) = (target(args)?, args.exe.as_deref());
    if let CoreTask::Shell = args.task {
        return shell::run(args);
    }
    let mut json = Output::json(args.json.as_deref())?;
    let opener = Opener::new(target, exe, &args.task);
    if let CoreTask::Save { file } = &args.task {
        let memory = opener.open(true)?.0;
        let bytes = save(&*memory, file)?;
        let line = format!("{}: {} of memory written to {}", memory.name(), format::bytes(bytes), file.display());
        let text = plain(&line) + "\n";
        return print(&text, json.as_ref()).map(|()| ExitCode::SUCCESS);
    }
    let mut attempt = 0;
    // Leaks and references need registers, which the kernel shows of stopped threads only.
    let mut stops = matches!(args.task, CoreTask::Leaks { .. } | CoreTask::Refs { .. });
    loop {
        attempt += 1;
        let (memory, table) = opener.open(stops)?;
        // Neither looks at objects.
        let is_brief = matches!(args.task, CoreTask::Stats | CoreTask::Log { .. });
        let walk = if is_brief { Heap::count_by } else { Heap::find_by };
        let found = table.and_then(|table| walk(&*memory, table)).map_err(Failure::from).and_then(|heap| {
            // Locks that are still held were held for long.
            let is_calm = heap.broken.is_empty() || attempt > DOUBTS;
            let is_last = is_calm || args.pid.is_none();
            if is_last { inspect(args, &heap).map(Some) } else { Ok(None) }
        });
        let is_unchanged = memory.is_unchanged();
        // The process goes on before its reader has read everything.
        drop(memory);
        match found {
            Ok(Some(found)) if is_unchanged => return found.show(json.as_mut()),
            Err(error) if is_unchanged => return Err(error),
            // The heap changed, or the process ran during a read without a stop.
            _ => stops = true,
        }
        sleep(memory::BETWEEN);
    }
}

/// A command's result.
struct Found {
    text: String,
    warnings: Vec<String>,
    document: Option<String>,
    /// By status 1.
    failed: bool,
}

impl Found {
    fn new<R: Serialize>(args: &args::Core, text: String, task: &str, rows: Vec<R>) -> Result<Self, Failure> {
        let document = || Document::new(task, &command(), &[], rows, &Ratios::default()).text();
        let document = args.json.is_some().then(document).transpose();
        let document = document.map_err(|e| format!("cannot write the figures as JSON: {e}"))?;
        Ok(Self { text, warnings: Vec::new(), document, failed: false })
    }

    fn show(self, json: Option<&mut Output>) -> Result<ExitCode, Failure> {
        self.warnings.iter().for_each(|warning| say(&format!("craton: {}\n", plain(warning))));
        let printed = print(&self.text, json.as_deref());
        if let (Some(json), Some(document)) = (json, self.document) {
            json.write(&document)?;
        }
        printed?;
        Ok(if self.failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

fn inspect(args: &args::Core, heap: &Heap<'_>) -> Result<Found, Failure> {
    let name = plain(&heap.reader.memory.name());
    match &args.task {
        CoreTask::Stats => {
            let found = stats(heap)?;
            Found::new(args, stats_text(&name, &found), "core stats", vec![found])
        }
        CoreTask::Leaks { all } => {
            let found = leaks(heap)?;
            let (warnings, failed) = (found.warnings.clone(), found.lost_objects > 0);
            let mut text = leaks_text(&name, &found, *all);
            if !failed {
                text += &format!("`craton profile {}` shows who holds what lives\n", place(args));
            }
            Ok(Found { warnings, failed, ..Found::new(args, text, "core leaks", vec![found])? })
        }
        CoreTask::Whatis { addresses } => {
            let found = addresses.iter().map(|at| whatis(heap, *at)).collect::<Result<Vec<_>, _>>()?;
            let text: String = found
                .iter()
                .flat_map(|what| what.to_string().lines().map(|line| plain(line) + "\n").collect::<Vec<_>>())
                .collect();
            Found::new(args, text, "core whatis", found)
        }
        CoreTask::Verify => {
            let found = verify(heap)?;
            let failed = !found.broken.is_empty();
            Ok(Found { failed, ..Found::new(args, verify_text(&name, &found), "core verify", vec![found])? })
        }
        CoreTask::Log { last } => {
            let found = log(heap, *last)?;
            if !found.is_there {
                let advice = "`craton set PID debug=audit` starts one in a running process, `craton run -o debug=audit -- CMD` \
                     in a new one";
                return Err(format!("{name} keeps no log; {advice}").into());
            }
            Found::new(args, log_text(&name, &found), "core log", vec![found])
        }
        CoreTask::Refs { address } => {
            let found = refs(heap, *address)?;
            Found::new(args, explore::refs_text(&name, &found), "core refs", vec![found])
        }
        CoreTask::Dump { address, bytes } => {
            let found = dump(heap, *address, *bytes)?;
            Found::new(args, explore::dump_text(&found), "core dump", vec![found])
        }
        CoreTask::Users { all } => {
            let found = users(heap)?;
            Found::new(args, explore::users_text(&name, &found, *all), "core users", vec![found])
        }
        CoreTask::Histogram { all } => {
            let found = histogram(heap);
            Found::new(args, explore::histogram_text(&name, &found, *all), "core histogram", vec![found])
        }
        CoreTask::Save { .. } | CoreTask::Shell => Err("the task has no heap to look at".to_owned().into()),
    }
}

#[derive(Clone, Copy)]
enum Target<'a> {
    Process(u32),
    Core(&'a Path),
}

/// The parser sees options behind the command too late.
fn target(args: &args::Core) -> Result<Target<'_>, Failure> {
    let wrong = match (args.pid, &args.core, &args.exe) {
        (Some(pid), None, None) => return Ok(Target::Process(pid)),
        (None, Some(core), _) => return Ok(Target::Core(core)),
        (None, None, _) => "no heap to inspect: give a core file, or --pid PID".to_owned(),
        (Some(pid), None, Some(exe)) => {
            format!("--pid {pid} cannot be used with --exe {}, which belongs to a core file", exe.display())
        }
        (Some(pid), Some(core), _) => {
            format!("--pid {pid} cannot be used with the core file {}: give one of them", core.display())
        }
    };
    Err(Failure::Usage(wrong))
}

/// The target, as `craton profile` takes it.
fn place(args: &args::Core) -> String {
    let core = args.core.as_deref().unwrap_or(Path::new("CORE"));
    args.pid.map_or_else(|| plain(&core.display().to_string()), |pid| pid.to_string())
}

fn print(text: &str, json: Option<&Output>) -> Result<(), Failure> {
    Ok(Output::beside(json).write(text).map_err(|e| format!("cannot print what was found: {e}"))?)
}

/// Prints and writes nothing, and returns `false`, if the process has run since.
fn table(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>, left: &[usize]) -> String {
    let head = head.iter().map(|cell| (*cell).to_owned()).collect();
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    format::stacked(&rows, left, left.iter().map(|column| column + 1).max().unwrap_or(1), Stream::Out.width())
}

fn stats_text(name: &str, found: &Stats) -> String {
    let mut text = format!(
        "{name}: {}, {}; the heap is at {:#x}, with {} of address space\n",
        format::plural(found.objects, "live object"),
        format::bytes(found.bytes),
        found.base,
        format::bytes(found.granted_bytes)
    );
    text += &format!(
        "large objects {} ({}), huge objects {} ({})\nfree objects in caches {}, objects of an old class on shared slabs {}\n\n",
        format::count(found.large_objects),
        format::bytes(found.large_bytes),
        format::count(found.huge_objects),
        format::bytes(found.huge_bytes),
        format::count(found.free_in_caches),
        format::count(found.old_objects)
    );
    let rows = found.classes.iter().map(|line| {
        let numbers = [line.object_bytes, line.slabs, line.morphed, line.objects, line.waiting, line.free];
        numbers.into_iter().map(format::count).chain([format::bytes(line.bytes)]).collect()
    });
    text += &table(&["size class", "slabs", "shared slabs", "live", "quarantined", "free", "live bytes"], rows, &[]);
    if !found.heaps.is_empty() {
        let rows = found.heaps.iter().map(|heap| {
            vec![heap.id.to_string(), heap.name.clone(), format::count(heap.objects), format::bytes(heap.bytes)]
        });
        text += &format!("\n{}", table(&["heap", "name", "live objects", "live bytes"], rows, &[1]));
    }
    if !found.caches.is_empty() {
        let rows = found.caches.iter().map(|cache| {
            let numbers =
                [cache.object_bytes, cache.slabs, cache.objects, cache.in_arrays, cache.in_depot, cache.total];
            let numbers = numbers.into_iter().map(format::count);
            std::iter::once(cache.name.clone()).chain(numbers).chain([format::bytes(cache.memory_bytes)]).collect()
        });
        let head = ["cache", "object size", "slabs", "live", "in CPU arrays", "in depot", "capacity", "memory"];
        text += &format!("\n{}", table(&head, rows, &[0]));
    }
    if found.buffers + found.waiting > 0 {
        text += &format!(
            "\ndebugging kit, or samples of guard_sample: {} ({}), {} that wait ({})\n",
            format::plural(found.buffers, "live buffer"),
            format::bytes(found.buffer_bytes),
            format::plural(found.waiting, "freed one"),
            format::bytes(found.waiting_bytes)
        );
    }
    if found.broken > 0 {
        text += &format!(
            "\nthe heap is broken in {}; `craton core verify` shows more\n",
            format::plural(found.broken, "place")
        );
    }
    text
}

fn leaks_text(name: &str, found: &Leaks, all: bool) -> String {
    let mut text = format!(
        "{name}: {}, {}, of {}, {}; searched {} of registers, stacks and data\n",
        format::plural(found.lost_objects, "lost object"),
        format::bytes(found.lost_bytes),
        format::plural(found.objects, "live object"),
        format::bytes(found.bytes),
        format::bytes(found.root_bytes)
    );
    if found.groups.is_empty() {
        return text;
    }
    let most = if all { usize::MAX } else { SHOWN };
    let rows = sizes(&found.groups, most).into_iter().map(|row| {
        let counts = [row.tops, row.objects].map(format::count);
        [range(row.least, row.most)].into_iter().chain(counts).chain([format::bytes(row.bytes)]).collect()
    });
    text += &format!("\n{}\n", table(&["size", "lost", "with those below", "bytes"], rows, &[]));
    for site in found.sites.iter().take(most) {
        text += &site_text(site);
    }
    if let more @ 1.. = found.sites.len().saturating_sub(most) {
        text += &format!("and from {}; --all shows them\n", format::plural(more as u64, "other stack"));
    }
    for site in found.sampled.iter().take(most) {
        text += &sampled_text(site);
    }
    if found.sites.is_empty() {
        text += "`craton run -o debug=audit`, or `craton set PID debug=audit` for later ones, records where each was allocated\n";
    }
    let mut largest: Vec<&Group> = found.groups.iter().collect();
    largest.sort_by_key(|group| std::cmp::Reverse(group.bytes));
    for group in largest.iter().take(most) {
        text += &format!("{:#x}: {}", group.address, byte_count(group.object_bytes));
        if !group.cache.is_empty() {
            text += &format!(" of the cache \"{}\"", group.cache);
        }
        text += &match group.objects - 1 {
            0 => String::from("\n"),
            more => format!(", with {} more below it {}\n", format::count(more), byte_count(group.bytes)),
        };
    }
    if let more @ 1.. = largest.len().saturating_sub(most) {
        text += &format!("and {} more; --all shows them\n", format::count(more as u64));
    }
    text
}

/// Tops of some sizes; sums with the objects below them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sizes {
    least: u64,
    most: u64,
    tops: u64,
    objects: u64,
    bytes: u64,
}

/// A row for each size, or for each power of two where there are more than `rows`.
fn sizes(groups: &[Group], rows: usize) -> Vec<Sizes> {
    let by = |key: &dyn Fn(u64) -> u64| {
        let mut all: BTreeMap<u64, Sizes> = BTreeMap::new();
        for group in groups {
            let size = group.object_bytes;
            let row = Sizes { least: size, most: size, tops: 0, objects: 0, bytes: 0 };
            let row = all.entry(key(size)).or_insert(row);
            (row.least, row.most) = (row.least.min(size), row.most.max(size));
            (row.tops, row.objects, row.bytes) = (row.tops + 1, row.objects + group.objects, row.bytes + group.bytes);
        }
        all.into_values().collect::<Vec<_>>()
    };
    let each = by(&|size| size);
    if each.len() <= rows { each } else { by(&|size| u64::from(size.max(1).next_power_of_two().ilog2())) }
}

fn range(least: u64, most: u64) -> String {
    if least == most { format::count(least) } else { format!("{} to {}", format::count(least), format::count(most)) }
}

fn site_text(site: &LeakSite) -> String {
    let LeakSite { roots, objects, bytes, least_bytes, most_bytes, .. } = site;
    let sizes = match least_bytes == most_bytes {
        true => byte_count(*least_bytes),
        false => format!("{} bytes", range(*least_bytes, *most_bytes)),
    };
    let below = match (objects == roots, *roots) {
        (true, 1) => String::new(),
        (true, _) => format!(" ({})", byte_count(*bytes)),
        (false, 1) => format!(" ({} with those below it, {})", format::count(*objects), byte_count(*bytes)),
        (false, _) => format!(" ({} with those below them, {})", format::count(*objects), byte_count(*bytes)),
    };
    let lost = format::plural(*roots, "lost object");
    let example = if *roots == 1 { "at" } else { "such as" };
    let mut text = format!("{lost} of {sizes}{below}, {example} {:#x}, allocated at:\n", site.example);
    for (i, frame) in site.stack.iter().enumerate() {
        text += &format!("    #{i} {}\n", plain(frame));
    }
    text
}

fn sampled_text(site: &Sampled) -> String {
    let Sampled { samples, objects, bytes, stack } = site;
    let samples = format::plural(*samples, "sample");
    let lost = format::plural(*objects, "lost object");
    let mut text = format!("some {} in {lost}, estimated from {samples}, allocated at:\n", format::bytes(*bytes));
    for (i, frame) in stack.iter().enumerate() {
        text += &format!("    #{i} {}\n", plain(frame));
    }
    text
}

fn byte_count(bytes: u64) -> String {
    format::plural(bytes, "byte")
}

fn log_text(name: &str, found: &Log) -> String {
    let (count, kept) = (format::plural(found.count, "transaction"), format::count(found.kept));
    let mut text = format!("{name}: {count} since the start; the log has the last {kept}, the newest first\n");
    for t in &found.transactions {
        let action = if t.action == "alloc" { "allocated" } else { "freed" };
        text += &format!("#{}: {:#x}, {}, {action} {}\n", t.number, t.address, byte_count(t.bytes), t.who);
    }
    text
}

fn verify_text(name: &str, found: &Verdict) -> String {
    let (spans, free) = (format::count(found.spans), format::plural(found.free, "object"));
    let mut text = match found.broken.first() {
        None => format!("{name}: the heap is intact: {spans} slabs and large objects, {free} on free lists\n"),
        Some(first) => format!("{name}: the heap is broken at {:#x}: {} ({})\n", first.address, first.what, first.rule),
    };
    for broken in found.broken.iter().skip(1) {
        text += &format!("  and at {:#x}: {} ({})\n", broken.address, broken.what, broken.rule);
    }
    if found.adrift > 0 {
        text += &format!("free objects on no free list: {}\n", format::count(found.adrift));
    }
    if !found.held.is_empty() {
        text += &format!("a thread was changing: {}; those were checked in part only\n", found.held.join(", "));
    }
    text
}
