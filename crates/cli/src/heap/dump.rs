//! `craton heap dump`: lists of what lies where, and a picture.

use super::print::{show, table};
use super::stats::{Figures, RangeLine, percent, ranges};
use super::{file, picture, view};
use crate::args::HeapDump;
use crate::failure::Failure;
use crate::output::Output;
use crate::terminal::plain;
use craton_lab::format::{bytes, count};
use craton_pheap::{Heap, Offset};
use serde::Serialize;
use std::process::ExitCode;

#[derive(Serialize)]
struct Row {
    file: String,
    slabs: Option<Vec<SlabLine>>,
    extents: Option<Vec<RangeLine>>,
    log: Option<Vec<ChunkLine>>,
    roots: Option<Vec<RootLine>>,
}

#[derive(Serialize)]
struct SlabLine {
    at: u64,
    object_bytes: u32,
    room: u32,
    objects: u32,
    /// Of the class before.
    old_object_bytes: Option<u32>,
    old_objects: u32,
    live_bytes: u64,
}

#[derive(Serialize)]
struct ChunkLine {
    at: u64,
    id: u64,
    entries: u32,
    tombstones: u32,
    is_sealed: bool,
}

#[derive(Serialize)]
struct RootLine {
    name: String,
    slot: u64,
    tag: u64,
    object_at: u64,
    object_bytes: Option<u64>,
}

pub fn dump(args: &HeapDump, json: Option<&mut Output>) -> Result<ExitCode, Failure> {
    let path = &args.file;
    let mut svg = args.svg.as_deref().map(|svg| Output::open("--svg", svg)).transpose()?;
    if let (Some(svg), Some(json)) = (&svg, &json)
        && svg.is_same(json)
    {
        return Err(Failure::Usage("--svg and --json name the same file".to_owned()));
    }
    let opened = view::open_whole(path)?;
    let heap = &opened.heap;
    let all = !(args.slabs || args.extents || args.log || args.roots || svg.is_some());
    let row = Row {
        file: path.to_string_lossy().into_owned(),
        slabs: (all || args.slabs).then(|| slabs(heap)),
        extents: (all || args.extents).then(|| ranges(heap)),
        log: (all || args.log).then(|| chunks(heap)),
        roots: (all || args.roots).then(|| roots(heap)).transpose().map_err(|why| file::broken(path, why))?,
    };
    if let Some(svg) = &mut svg {
        svg.write(&picture::picture(heap, &Figures::new(path, &opened)?))?;
    }
    let note = super::recovery::Recovery::new(&opened.identity, &opened.report).note();
    let lists = [slabs_text(&row), extents_text(&row), log_text(&row), roots_text(&row)];
    let lists: Vec<String> = lists.into_iter().filter(|list| !list.is_empty()).collect();
    let text = note + &lists.join("\n");
    let is_shown = svg.as_ref().is_none_or(|svg| !svg.is_standard());
    show(if is_shown { &text } else { "" }, "heap dump", row, json)?;
    Ok(ExitCode::SUCCESS)
}

fn slabs(heap: &Heap<view::View>) -> Vec<SlabLine> {
    let line = |slab: craton_pheap::SlabView| SlabLine {
        at: slab.at,
        object_bytes: slab.object_bytes,
        room: slab.objects,
        objects: slab.live,
        old_object_bytes: slab.old.map(|(bytes, _)| bytes),
        old_objects: slab.old.map_or(0, |(_, live)| live),
        live_bytes: slab.live_bytes,
    };
    heap.slabs().into_iter().map(line).collect()
}

fn chunks(heap: &Heap<view::View>) -> Vec<ChunkLine> {
    let line = |chunk: craton_pheap::ChunkView| ChunkLine {
        at: chunk.at,
        id: chunk.id,
        entries: chunk.live,
        tombstones: chunk.needed,
        is_sealed: chunk.is_sealed,
    };
    heap.log_chunks().into_iter().map(line).collect()
}

fn roots(heap: &Heap<view::View>) -> Result<Vec<RootLine>, craton_pheap::Error> {
    let line = |root: craton_pheap::Root| {
        let object = heap.read(root.slot.0);
        RootLine {
            name: String::from_utf8_lossy(root.name()).into_owned(),
            slot: root.slot.0,
            tag: root.tag,
            object_at: object,
            object_bytes: heap.size_of(Offset(object)).ok(),
        }
    };
    Ok(heap.roots()?.into_iter().map(line).collect())
}

fn hex(at: u64) -> String {
    format!("{at:#x}")
}

fn slabs_text(row: &Row) -> String {
    let Some(slabs) = &row.slabs else { return String::new() };
    let lines = slabs.iter().map(|slab| {
        let old = slab.old_object_bytes.map_or("-".to_owned(), |bytes| format!("{} of {bytes}", slab.old_objects));
        let share = f64::from(slab.objects) / f64::from(slab.room);
        let numbers = [slab.object_bytes, slab.room, slab.objects].map(|n| count(n.into()));
        [hex(slab.at)].into_iter().chain(numbers).chain([old, percent(Some(share))]).collect()
    });
    let head = ["slab", "object size", "room", "live", "old class", "occupancy"];
    table(&head, lines, &[0])
}

fn extents_text(row: &Row) -> String {
    let Some(extents) = &row.extents else { return String::new() };
    let lines = extents.iter().map(|range| vec![hex(range.at), range.kind.name().to_owned(), bytes(range.bytes)]);
    table(&["range", "kind", "size"], lines, &[0, 1])
}

fn log_text(row: &Row) -> String {
    let Some(log) = &row.log else { return String::new() };
    let lines = log.iter().map(|chunk| {
        let sealed = if chunk.is_sealed { "sealed" } else { "open" };
        let numbers = [chunk.id, chunk.entries.into(), chunk.tombstones.into()].map(count);
        [hex(chunk.at)].into_iter().chain(numbers).chain([sealed.to_owned()]).collect()
    });
    table(&["log chunk", "id", "entries in use", "tombstones needed", "state"], lines, &[0])
}

fn roots_text(row: &Row) -> String {
    let Some(roots) = &row.roots else { return String::new() };
    let lines = roots.iter().map(|root| {
        let object = match (root.object_at, root.object_bytes) {
            (0, _) => "empty".to_owned(),
            (at, Some(size)) => format!("{at:#x}, {}", bytes(size)),
            (at, None) => format!("{at:#x}, no object"),
        };
        vec![plain(&root.name), hex(root.slot), hex(root.tag), object]
    });
    table(&["root", "slot", "type", "object"], lines, &[0, 3])
}
