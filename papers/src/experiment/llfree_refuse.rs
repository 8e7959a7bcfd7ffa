//! `llfree-refuse`: the cost of a get when few or no frames are free (LLFree §3.2.2, without
//! figures).

use super::llfree::{FULL_ROUNDS, QUICK_ROUNDS};
use super::sheet::{Column, Fields, Map, Row, Sheet, Show, Title, by, distinct, geomean, groups, json, pairs, table};
use super::{Ask, Findings};
use crate::frames::refusals::{Case, PROCESSORS, Refusals};
use crate::frames::{Design, authors};
use craton_lab::picture::{Axis, Unit};
use craton_lab::ratios::OURS;
use craton_lab::summary::Spread;

const FULL_GIB: usize = 16;
const QUICK_GIB: usize = 1;
const CALLS: usize = 20_000;
const QUICK_CALLS: usize = 200;
/// The slowest case reads all rows.
const SLOW: usize = 100;

const COLUMNS: [Column; 6] = [
    ("request", "workload", Show::Text),
    ("allocator", "allocator", Show::Text),
    ("memory", "memory_bytes", Show::Bytes),
    ("time of a call", "", Show::By(|row| format!("{:.1} ns", row.num("ns_per_call")))),
    ("least", "", Show::By(|row| format!("{:.1} ns", row.num("ns_per_call_min")))),
    ("", "status", Show::Status),
];

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    ask.refuse(&["--peers"], ", which compares allocators of frames")?;
    ask.known("request", &Case::ALL.map(Case::name))?;
    let (gib, calls) = ask.form((QUICK_GIB, QUICK_CALLS), (FULL_GIB, CALLS));
    let rounds = ask.rounds(QUICK_ROUNDS, FULL_ROUNDS);
    let ours = [Design::Craton, Design::Strict, Design::Paper];
    let designs: Vec<Design> = ours.into_iter().chain(Design::authors()).collect();
    let cases: Vec<Case> = Case::ALL.into_iter().filter(|case| ask.wants(case.name())).collect();
    let (mut rows, mut done, total) = (Vec::new(), 0, cases.len() * rounds * designs.len());
    for case in cases {
        let world = case.world(gib);
        let calls = if case == Case::Pair { calls.div_ceil(SLOW) } else { calls };
        let job = Refusals { case, frames: world.frames, calls };
        let mut found: Vec<Vec<Result<f64, String>>> = vec![Vec::new(); designs.len()];
        for round in 0..rounds {
            for (design, found) in designs.iter().zip(&mut found) {
                if ask.stopped() {
                    break;
                }
                ask.show(case.name(), design.name(), round, (done, total));
                found.push(design.with(&world, job).and_then(|done| done));
                done += 1;
            }
        }
        rows.extend(designs.iter().zip(&found).filter_map(|(design, found)| row(*design, &job, found)));
    }
    let mut sheet = Sheet::new(ask, rows).measured()?;
    let ratios = sheet.ratios(ratios, 3);
    let names: Vec<String> = designs.iter().map(|design| design.name().to_owned()).collect();
    let all: Vec<&Row> = sheet.rows().iter().filter(|row| row.is_ok()).collect();
    let bars = groups(all, by("workload"), (&names, by("allocator")), |row| row.num("ns_per_call") / 1e9);
    let title = Title("", "Gets where little or nothing is free", "time of a call; medians");
    sheet.bars(title, Axis::log("time of a call", Unit::Seconds), &names, bars, None);
    let table = table(&COLUMNS, sheet.rows());
    sheet.findings(format!("{table}\n{ratios}\nthe paper's figures: none\n{}", authors::note()))
}

fn row(design: Design, job: &Refusals, found: &[Result<f64, String>]) -> Option<Row> {
    let wrong = found.iter().find_map(|round| round.as_ref().err());
    let spread = Spread::of(found.iter().flatten().copied());
    let row = json!({
        "workload": job.case.name(),
        "allocator": design.name(),
        "memory_bytes": (job.frames as u64) << 12,
        "processors": PROCESSORS,
        "rounds": found.iter().flatten().count(),
        "ns_per_call": spread.map(|of| of.median),
        "ns_per_call_min": spread.map(|of| of.min),
        "status": wrong.map_or("ok".to_owned(), |wrong| format!("failed: {wrong}")),
    });
    (!found.is_empty()).then_some(row)
}

fn ratios(rows: &[Row]) -> Map {
    let mut ratios = Map::new();
    for other in distinct(rows, |row| row.word("allocator")).into_iter().filter(|name| *name != OURS) {
        let mut all = Vec::new();
        for case in Case::ALL.map(Case::name) {
            let one = |name: &'static str| move |row: &Row| row.has(&[("allocator", name), ("workload", case)]);
            let theirs = |row: &Row| row.has(&[("allocator", other), ("workload", case)]);
            let found = pairs(rows, "ns_per_call", (&one(OURS), &theirs), &["workload"]);
            if let [ratio] = found[..] {
                ratios.insert(format!("{case}_vs_{other}"), ratio);
            }
            all.extend(found);
        }
        if !all.is_empty() {
            ratios.insert(format!("time_vs_{other}"), geomean(&all));
        }
    }
    ratios
}
