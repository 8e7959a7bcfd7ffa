//! `craton heap stats`. Slabs, large extents, undo buffers beyond slabs, log units and free ranges
//! add up to the data.

use super::file;
use super::print::{lines, show, table};
use super::recovery::Recovery;
use super::view::{self, Opened};
use crate::failure::Failure;
use crate::output::Output;
use craton_lab::format::{self, plural};
use craton_pheap::{ExtentKind, Heap, PAGE_BYTES, Range, RangeState, UNIT_PAGES};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

const UNIT: u64 = UNIT_PAGES * PAGE_BYTES;

#[derive(Clone, Serialize)]
pub struct Figures {
    pub file: String,
    pub recovery: Recovery,
    pub bytes: u64,
    pub disk_bytes: u64,
    /// Superblock, roots, lanes.
    pub head_bytes: u64,
    pub data_bytes: u64,
    pub objects: u64,
    pub object_bytes: u64,
    pub slabs: u64,
    pub mixed_slabs: u64,
    pub slab_bytes: u64,
    pub small_objects: u64,
    pub small_bytes: u64,
    /// Live bytes of slabs by bytes of slabs.
    pub slab_occupancy: Option<f64>,
    pub large_objects: u64,
    pub large_bytes: u64,
    /// Kept for transactions, also in slabs.
    pub undo_buffers: u64,
    pub undo_bytes: u64,
    /// Beyond slabs.
    pub undo_extent_bytes: u64,
    pub log_bytes: u64,
    pub log_chunks: u64,
    pub log_entries: u64,
    pub log_free_chunks: u64,
    pub free_ranges: u64,
    pub free_bytes: u64,
    pub largest_free_bytes: u64,
    /// 1 − largest free range ÷ free bytes.
    pub fragmentation: Option<f64>,
    pub roots: u64,
    pub classes: Vec<ClassLine>,
}

#[derive(Clone, Serialize)]
pub struct ClassLine {
    pub object_bytes: u64,
    pub slabs: u64,
    pub room: u64,
    pub objects: u64,
    pub live_bytes: u64,
    /// Live objects by room.
    pub occupancy: Option<f64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Slab,
    Object,
    Undo,
    Log,
    Free,
}

impl Kind {
    pub const ALL: [Self; 5] = [Self::Slab, Self::Object, Self::Undo, Self::Log, Self::Free];

    pub fn name(self) -> &'static str {
        ["slab", "object", "undo", "log", "free"][self as usize]
    }
}

#[derive(Clone, Copy, Serialize)]
pub struct RangeLine {
    pub at: u64,
    pub bytes: u64,
    pub kind: Kind,
}

pub fn ranges(heap: &Heap<view::View>) -> Vec<RangeLine> {
    let undo = heap.undo();
    let line = |range: Range| {
        let at = range.page * PAGE_BYTES;
        let kind = match range.state {
            RangeState::Used(ExtentKind::Slab) => Kind::Slab,
            RangeState::Used(ExtentKind::Object) if undo.iter().any(|(buffer, _)| *buffer == at) => Kind::Undo,
            RangeState::Used(ExtentKind::Object) => Kind::Object,
            RangeState::Log => Kind::Log,
            RangeState::Reclaimed | RangeState::Retained | RangeState::Discarding => Kind::Free,
        };
        RangeLine { at, bytes: range.pages * PAGE_BYTES, kind }
    };
    heap.ranges().into_iter().map(line).collect()
}

impl Figures {
    pub fn new(path: &Path, opened: &Opened) -> Result<Self, Failure> {
        let heap = &opened.heap;
        let (bytes, disk_bytes) = file::sizes(path)?;
        let (stats, extents, undo) = (heap.stats(), heap.extent_stats(), heap.undo());
        let ranges = ranges(heap);
        let sum = |kind: Kind| ranges.iter().filter(|range| range.kind == kind).map(|range| range.bytes).sum::<u64>();
        let free: Vec<u64> = ranges.iter().filter(|range| range.kind == Kind::Free).map(|range| range.bytes).collect();
        let (free_bytes, largest) = (sum(Kind::Free), free.iter().copied().max().unwrap_or(0));
        let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        let slab_bytes = sum(Kind::Slab);
        Ok(Self {
            file: path.to_string_lossy().into_owned(),
            recovery: Recovery::new(&opened.identity, &opened.report),
            bytes,
            disk_bytes,
            head_bytes: opened.identity.data,
            data_bytes: ranges.iter().map(|range| range.bytes).sum(),
            objects: stats.small + stats.large,
            object_bytes: stats.small_bytes + stats.large_bytes,
            slabs: stats.slabs,
            mixed_slabs: stats.mixed,
            slab_bytes,
            small_objects: stats.small,
            small_bytes: stats.small_bytes,
            slab_occupancy: share(stats.small_bytes, slab_bytes),
            large_objects: stats.large,
            large_bytes: stats.large_bytes,
            undo_buffers: undo.len() as u64,
            undo_bytes: undo.iter().map(|(_, bytes)| bytes).sum(),
            undo_extent_bytes: sum(Kind::Undo),
            log_bytes: sum(Kind::Log),
            log_chunks: extents.log.chunks,
            log_entries: extents.log.live,
            log_free_chunks: extents.log.free_chunks,
            free_ranges: free.len() as u64,
            free_bytes,
            largest_free_bytes: largest,
            fragmentation: share(free_bytes - largest, free_bytes),
            roots: heap.roots().map_err(|why| file::broken(path, why))?.len() as u64,
            classes: classes(heap),
        })
    }
}

fn classes(heap: &Heap<view::View>) -> Vec<ClassLine> {
    // Slabs, room, live objects.
    let mut found: BTreeMap<u64, [u64; 3]> = BTreeMap::new();
    for slab in heap.slabs() {
        let of_class = found.entry(slab.object_bytes.into()).or_default();
        let own = [1, slab.objects.into(), slab.live.into()];
        *of_class = std::array::from_fn(|i| of_class[i] + own[i]);
        if let Some((bytes, live)) = slab.old {
            found.entry(bytes.into()).or_default()[2] += u64::from(live);
        }
    }
    let line = |(object_bytes, [slabs, room, objects]): (u64, [u64; 3])| ClassLine {
        object_bytes,
        slabs,
        room,
        objects,
        live_bytes: objects * object_bytes,
        occupancy: (room > 0).then(|| objects as f64 / room as f64),
    };
    found.into_iter().map(line).collect()
}

pub fn stats(path: &Path, json: Option<&mut Output>) -> Result<ExitCode, Failure> {
    let opened = view::open_whole(path)?;
    let figures = Figures::new(path, &opened)?;
    show(&text(&figures), "heap stats", figures, json)?;
    Ok(ExitCode::SUCCESS)
}

pub fn percent(part: Option<f64>) -> String {
    part.map_or("-".to_owned(), |part| format!("{:.1} %", 100.0 * part))
}

fn text(it: &Figures) -> String {
    let (count, bytes) = (format::count, format::bytes);
    let name = crate::terminal::plain(&it.file);
    let mut text = format!("{name}: {}, {}\n", plural(it.objects, "live object"), bytes(it.object_bytes));
    text += &it.recovery.note();
    text += &lines(&[
        ("file", format!("{}, {} on the disk", bytes(it.bytes), bytes(it.disk_bytes))),
        ("data", format!("{} behind {} of headers and rings", bytes(it.data_bytes), bytes(it.head_bytes))),
        (
            "slabs",
            format!(
                "{} of {} ({} mixed), occupancy {}",
                count(it.slabs),
                bytes(UNIT),
                count(it.mixed_slabs),
                percent(it.slab_occupancy)
            ),
        ),
        ("small objects", format!("{}, {}", count(it.small_objects), bytes(it.small_bytes))),
        ("large objects", format!("{}, {}", count(it.large_objects), bytes(it.large_bytes))),
        ("undo buffers", format!("{}, {}", count(it.undo_buffers), bytes(it.undo_bytes))),
        (
            "log",
            format!(
                "{}: {} in use with {} live entries, {} free",
                bytes(it.log_bytes),
                plural(it.log_chunks, "chunk"),
                count(it.log_entries),
                count(it.log_free_chunks)
            ),
        ),
        (
            "free",
            format!(
                "{} in {}, the largest {}",
                bytes(it.free_bytes),
                plural(it.free_ranges, "range"),
                bytes(it.largest_free_bytes)
            ),
        ),
        ("fragmentation", percent(it.fragmentation)),
        ("roots", count(it.roots)),
    ]);
    if !it.classes.is_empty() {
        let rows = it.classes.iter().map(|line| {
            let numbers = [line.object_bytes, line.slabs, line.room, line.objects].map(count);
            numbers.into_iter().chain([bytes(line.live_bytes), percent(line.occupancy)]).collect()
        });
        text += &format!("\n{}", table(&["size class", "slabs", "room", "live", "live bytes", "occupancy"], rows, &[]));
    }
    text
}
