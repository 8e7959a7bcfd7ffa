//! `pages-pair`: the cost of New and Delete of one page in a warm heap, from 1 GiB to 1 TiB
//! (TEMERAIRE §4). `turnover` frees one of some thousand spans at random, then allocates one, which
//! mostly misses the caches.

use super::sheet::{Column, Fields, Row, Sheet, Show, Title, json, table};
use super::{Ask, Findings, simulation};
use craton_base::{
    Advice, Ask as Asked, Clock, CollapseError, Density, Floor, HUGEPAGE_SIZE, HugePages, NoMemory, PageRange, Pages,
    Residency, SpanSource, Table,
};
use craton_lab::format::bytes;
use craton_lab::picture::{Axis, Line, Point, Unit};
use craton_lab::rng::Rng;
use craton_lab::summary::Spread;
use craton_pages::{HugeBacking, PageHeapExt, Temeraire, Tracker};
use std::time::Instant;

const SIZES: [(&str, u64); 3] = [("1 GiB", 1 << 30), ("32 GiB", 32 << 30), ("1 TiB", 1 << 40)];
const QUICK_SIZES: usize = 2;
/// Few: the best repetition was not interrupted.
const PAIRS: u32 = 10_000;
const REPETITIONS: usize = 300;
const QUICK_REPETITIONS: usize = 60;
const TURNED: usize = 4096;
const SEED: u64 = 1;
const MOST_S: f64 = 60e-9;

/// Grants everything, keeps nothing.
struct Lean;

impl Floor for Lean {
    fn reserve(&mut self, _: HugePages) -> Result<(), NoMemory> {
        Ok(())
    }
    fn back(&mut self, _: PageRange) -> Result<(), NoMemory> {
        Ok(())
    }
    fn unback(&mut self, _: PageRange) -> Result<(), NoMemory> {
        Ok(())
    }
    fn collapse(&mut self, _: PageRange) -> Result<(), CollapseError> {
        Err(CollapseError::Unsupported)
    }
    fn advise(&mut self, _: PageRange, _: Advice) -> bool {
        true
    }
    fn residency(&self, _: PageRange, _: Asked) -> Residency {
        Residency::default()
    }
}

struct Still;

impl Clock for Still {
    fn now_ns(&self) -> u64 {
        1 << 40
    }
}

type Heap = Temeraire<Lean, Still>;

const COLUMNS: [Column; 9] = [
    ("heap", "heap_bytes", Show::Bytes),
    ("", "density", Show::Text),
    ("", "pattern", Show::Text),
    ("best", "ns_min", Show::Fixed(1, " ns")),
    ("median", "ns_median", Show::Fixed(1, " ns")),
    ("in spans", "used_bytes", Show::Bytes),
    ("spans", "spans", Show::Plain),
    ("metadata", "metadata_bytes", Show::Bytes),
    ("for each byte", "metadata_per_byte", Show::Percent(4)),
];

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    let sizes = if ask.quick && ask.only.is_empty() { &SIZES[..QUICK_SIZES] } else { &SIZES[..] };
    let mut rows = Vec::new();
    for ((_, heap_bytes), _) in simulation::asked(ask, sizes, &simulation::ONCE)? {
        rows.extend(Filled::new(*heap_bytes)?.rows(ask.form(QUICK_REPETITIONS, REPETITIONS))?);
    }
    let table = table(&COLUMNS, &rows);
    let mut sheet = Sheet::new(ask, rows);
    let title = Title(
        "",
        "New and Delete of one page, by the size of the heap",
        "one thread, no system below; the best of several repetitions, the band up to the median; the line: 60 ns, the \
                   most it may be",
    );
    let axes = (Axis::log2("size of the heap", Unit::Bytes), Axis::linear("time of New and Delete", Unit::Seconds));
    let series = series(sheet.rows());
    sheet.lines(title, axes, series, Some(MOST_S));
    sheet.findings(format!("New and Delete of one page together, one thread, no system below\n\n{table}"))
}

struct Filled {
    heap: Heap,
    heap_bytes: u64,
    spans: usize,
    rng: Rng,
}

fn density_of(span: PageRange) -> Density {
    // Short spans are mostly slabs of small objects.
    if span.len.0 == 1 { Density::Dense } else { Density::Sparse }
}

impl Filled {
    fn new(heap_bytes: u64) -> Result<Self, String> {
        let hugepages = HugePages((heap_bytes / HUGEPAGE_SIZE as u64) as u32);
        // Room for what does not fit at once.
        let capacity = HugePages(hugepages.0 + hugepages.0 / 8 + 1024);
        let trackers: Vec<Tracker> = (0..capacity.0).map(|_| Tracker::default()).collect();
        let table = Table::from_slice(trackers.leak());
        let mut heap = Heap::new(Lean, Still, table, capacity, HugeBacking::ALWAYS);
        let (mut rng, mut spans) = (Rng::new(SEED, 0), Vec::new());
        let pages = hugepages.pages();
        while heap.in_use() < pages {
            // Magnitudes from 1 to 127 pages are equally likely.
            let low = 1 << rng.below(7);
            let range = PageRange { len: Pages(low + rng.below(low)), ..PageRange::default() };
            let span = heap.alloc(range.len, Pages(1), density_of(range));
            spans.push(span.map_err(|e| format!("the simulated heap of {}: {e}", bytes(heap_bytes)))?.range);
        }
        while u64::from(heap.in_use().0) * 10 > u64::from(pages.0) * 9 {
            let span = spans.swap_remove(rng.below(spans.len() as u32) as usize);
            heap.free(span, density_of(span)).expect("the span is out");
        }
        Ok(Self { heap, heap_bytes, spans: spans.len(), rng })
    }

    fn rows(mut self, repetitions: usize) -> Result<Vec<Row>, String> {
        let mut rows = Vec::new();
        for (name, density) in [("dense", Density::Dense), ("sparse", Density::Sparse)] {
            rows.push(self.row("pair", name, repetitions, |filled| filled.pairs(density))?);
            let mut out = Vec::with_capacity(TURNED);
            for _ in 0..TURNED {
                out.push(self.alloc(density)?);
            }
            rows.push(self.row("turnover", name, repetitions, |filled| filled.turnovers(density, &mut out))?);
            for span in out {
                self.free(span, density)?;
            }
        }
        Ok(rows)
    }

    fn row(
        &mut self,
        pattern: &'static str,
        density: &'static str,
        repetitions: usize,
        mut repeat: impl FnMut(&mut Self) -> Result<(), String>,
    ) -> Result<Row, String> {
        repeat(self)?;
        let mut ns = Vec::with_capacity(repetitions);
        for _ in 0..repetitions {
            let start = Instant::now();
            repeat(self)?;
            ns.push(start.elapsed().as_nanos() as f64 / f64::from(PAIRS));
        }
        let spread = Spread::of(ns).ok_or("nothing was timed")?;
        let metadata = self.heap.granted().0 as usize * size_of::<Tracker>() + size_of::<Heap>();
        Ok(json!({
            "heap_bytes": self.heap_bytes,
            "pattern": pattern,
            "density": density,
            "ns_min": spread.min,
            "ns_median": spread.median,
            "used_bytes": self.heap.in_use().bytes().0 as u64,
            "spans": self.spans,
            "metadata_bytes": metadata,
            "metadata_per_byte": metadata as f64 / self.heap.granted().bytes().0 as f64,
            "status": "ok",
        }))
    }

    fn alloc(&mut self, density: Density) -> Result<PageRange, String> {
        let span = self.heap.alloc(Pages(1), Pages(1), density);
        span.map(|span| span.range).map_err(|e| format!("a page of a heap of {}: {e}", bytes(self.heap_bytes)))
    }

    fn free(&mut self, span: PageRange, density: Density) -> Result<(), String> {
        self.heap.free(span, density).map_err(|e| format!("a page of a heap of {}: {e}", bytes(self.heap_bytes)))
    }

    fn pairs(&mut self, density: Density) -> Result<(), String> {
        for _ in 0..PAIRS {
            let span = self.alloc(density)?;
            self.free(span, density)?;
        }
        Ok(())
    }

    fn turnovers(&mut self, density: Density, out: &mut [PageRange]) -> Result<(), String> {
        for _ in 0..PAIRS {
            let one = &mut out[self.rng.below(TURNED as u32) as usize];
            let old = *one;
            self.heap.free(old, density).map_err(|e| e.to_string())?;
            *one = self.heap.alloc(Pages(1), Pages(1), density).map_err(|e| e.to_string())?.range;
        }
        Ok(())
    }
}

fn series(rows: &[Row]) -> Vec<Line> {
    let names = [("dense", "pair"), ("dense", "turnover"), ("sparse", "pair"), ("sparse", "turnover")];
    let line = |(density, pattern)| {
        let of = rows.iter().filter(|row| row.has(&[("density", density), ("pattern", pattern)]));
        let points = of.map(|row| {
            let (best, median) = (row.num("ns_min") / 1e9, row.num("ns_median") / 1e9);
            Point { x: row.num("heap_bytes"), y: best, band: Some((best, median)) }
        });
        Line { name: format!("{density} {pattern}"), points: points.collect() }
    };
    names.map(line).to_vec()
}

#[cfg(test)]
mod tests;
