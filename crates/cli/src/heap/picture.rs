//! The picture of a heap: a cell for each unit of 64 KiB, several in a large heap, coloured by the
//! kind with the most bytes; slabs' shades grow with their live bytes.

use super::stats::{Figures, Kind, percent, ranges};
use super::view::View;
use craton_lab::format::{bytes, plural};
use craton_lab::picture::escape;
use craton_pheap::{Heap, PAGE_BYTES, UNIT_PAGES};
use std::fmt::Write;

const UNIT: u64 = UNIT_PAGES * PAGE_BYTES;
const CELLS_MOST: u64 = 16_384;
const COLUMNS: u64 = 64;
/// Between the left edges of two cells.
const STEP: u64 = 12;
const CELL: u64 = 11;
const MARGIN: u64 = 16;
/// Right of the row's offset.
const LEFT: u64 = MARGIN + 84;
const TOP: u64 = 64;
const LEGEND_STEP: u64 = 22;

/// Superblock, roots, lanes.
const HEAD: &str = "#7a7a7a";
/// From empty to full.
const SLAB: [&str; 5] = ["#dbe9f6", "#a6cbe6", "#6ba9d2", "#3380b9", "#0b4f8a"];
const OBJECT: &str = "#3d9a5b";
const UNDO: &str = "#d9772b";
const LOG: &str = "#8a55b5";
const FREE: &str = "#f3f1ea";
const TEXT: &str = "#222222";

#[derive(Clone, Copy, Default)]
struct Cell {
    head: u64,
    kinds: [u64; Kind::ALL.len()],
    live: u64,
}

impl Cell {
    fn fill(&self) -> &'static str {
        let most = Kind::ALL.into_iter().max_by_key(|kind| (self.kinds[*kind as usize], *kind != Kind::Free));
        let Some(most) = most.filter(|kind| self.kinds[*kind as usize] >= self.head) else { return HEAD };
        match most {
            Kind::Slab => shade(self.live, self.kinds[Kind::Slab as usize]),
            Kind::Object => OBJECT,
            Kind::Undo => UNDO,
            Kind::Log => LOG,
            Kind::Free => FREE,
        }
    }
}

fn shade(live: u64, whole: u64) -> &'static str {
    SLAB[((live * 5).checked_div(whole).unwrap_or(0) as usize).min(4)]
}

fn cells(heap: &Heap<View>, figures: &Figures) -> (Vec<Cell>, u64) {
    let end = figures.head_bytes + figures.data_bytes;
    let each = UNIT * (end.div_ceil(UNIT).div_ceil(CELLS_MOST)).next_power_of_two();
    let mut cells = vec![Cell::default(); end.div_ceil(each) as usize];
    let mut add = |at: u64, len: u64, f: &dyn Fn(&mut Cell, u64)| {
        let mut from = at;
        while from < at + len {
            let to = (from / each + 1) * each;
            let to = to.min(at + len);
            f(&mut cells[(from / each) as usize], to - from);
            from = to;
        }
    };
    add(0, figures.head_bytes, &|cell, bytes| cell.head += bytes);
    for range in ranges(heap) {
        add(range.at, range.bytes, &|cell, bytes| cell.kinds[range.kind as usize] += bytes);
    }
    for slab in heap.slabs() {
        add(slab.at, 1, &|cell, _| cell.live += slab.live_bytes);
    }
    (cells, each)
}

pub fn picture(heap: &Heap<View>, figures: &Figures) -> String {
    let (cells, each) = cells(heap, figures);
    let rows = (cells.len() as u64).div_ceil(COLUMNS);
    let legend_top = TOP + rows * STEP + 24;
    let legend = legend(figures);
    let width = LEFT + COLUMNS * STEP + MARGIN;
    let height = legend_top + (legend.len() as u64).div_ceil(2) * LEGEND_STEP + MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"Helvetica, Arial, sans-serif\">\n<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    let name = figures.file.rsplit('/').next().unwrap_or(&figures.file);
    text(&mut svg, MARGIN, 26, 16, "start", name);
    let summary = format!(
        "{} in {}; a cell is {}; occupancy of slabs {}, fragmentation {}",
        bytes(figures.object_bytes),
        plural(figures.objects, "live object"),
        bytes(each),
        percent(figures.slab_occupancy),
        percent(figures.fragmentation)
    );
    text(&mut svg, MARGIN, 46, 12, "start", &summary);
    for (i, cell) in cells.iter().enumerate() {
        let (column, row) = (i as u64 % COLUMNS, i as u64 / COLUMNS);
        let (x, y) = (LEFT + column * STEP, TOP + row * STEP);
        if column == 0 && row.is_multiple_of(2) {
            text(&mut svg, LEFT - 6, y + 9, 10, "end", &format!("{:#x}", i as u64 * each));
        }
        rect(&mut svg, x, y, cell.fill());
    }
    for (i, (fill, label)) in legend.iter().enumerate() {
        let (x, y) = (LEFT + i as u64 % 2 * 400, legend_top + i as u64 / 2 * LEGEND_STEP);
        let fills: Vec<&str> = fill.clone();
        for (n, fill) in fills.iter().enumerate() {
            rect(&mut svg, x + n as u64 * STEP, y, fill);
        }
        text(&mut svg, x + fills.len() as u64 * STEP + 6, y + 10, 12, "start", label);
    }
    svg + "</svg>\n"
}

/// Colours, and what they mean with the sums.
fn legend(it: &Figures) -> Vec<(Vec<&'static str>, String)> {
    vec![
        (vec![HEAD], format!("superblock, roots, lanes: {}", bytes(it.head_bytes))),
        (SLAB.to_vec(), format!("{}, empty to full: {}", plural(it.slabs, "slab"), bytes(it.slab_bytes))),
        (vec![OBJECT], format!("{}: {}", plural(it.large_objects, "large object"), bytes(it.large_bytes))),
        (vec![UNDO], format!("undo buffers outside slabs: {}", bytes(it.undo_extent_bytes))),
        (vec![LOG], format!("bookkeeping log: {}", bytes(it.log_bytes))),
        (vec![FREE], format!("{}: {}", plural(it.free_ranges, "free range"), bytes(it.free_bytes))),
    ]
}

fn rect(svg: &mut String, x: u64, y: u64, fill: &str) {
    // Free cells would vanish on white.
    let edge = if fill == FREE { " stroke=\"#d8d4c6\" stroke-width=\"0.5\"" } else { "" };
    let _ = writeln!(svg, "<rect x=\"{x}\" y=\"{y}\" width=\"{CELL}\" height=\"{CELL}\" fill=\"{fill}\"{edge}/>");
}

fn text(svg: &mut String, x: u64, y: u64, size: u32, anchor: &str, text: &str) {
    let text = escape(&crate::terminal::plain(text));
    let how = format!("font-size=\"{size}\" fill=\"{TEXT}\" text-anchor=\"{anchor}\"");
    let _ = writeln!(svg, "<text x=\"{x}\" y=\"{y}\" {how}>{text}</text>");
}
