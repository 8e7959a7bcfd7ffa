//! `llfree-crash`: frames lost when processes with a persistent zone are killed (LLFree §5.7). The
//! file under `TMPDIR` survives the process but not the system; caches count as persistent.

use super::sheet::{Column, Fields, Map, Row, Sheet, Show, Title, json, table};
use super::{Ask, Findings};
use crate::frames::GIB;
use crate::frames::crash::{Found, World};
use craton_frames::Opened;
use craton_lab::format::count;
use craton_lab::machine::processors;
use craton_lab::picture::{Axis, Estimate, Group, Unit};
use craton_lab::ratios::OURS;
use craton_lab::rng::Rng;
use craton_lab::scratch::Scratch;
use craton_lab::summary::Spread;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const FULL_KILLS: usize = 1000;
const QUICK_KILLS: usize = 50;
const FULL_GIB: usize = 128;
const QUICK_GIB: usize = 4;
const TIMES_GIB: usize = 128;
const FULL_TIMES: usize = 101;
const QUICK_TIMES: usize = 21;
const LEAST_THREADS: usize = 2;
const MOST_THREADS: usize = 16;
/// One process in this many may die while it opens the zone.
const EARLY_OF: u32 = 8;
/// Once its threads have begun.
const LONGEST_US: u32 = 20_000;
const PATIENCE: Duration = Duration::from_secs(60);
const SEED: u64 = 1;

const KILL: &str = "kill";
const CRASHED: &str = "after a crash";
const CLOSED: &str = "after closing";

const PAPER: &str = "\
the paper's figures, 128 GiB on persistent memory, a Xeon Gold 5320, one thread: 1000 crashes, frames lost in about half of them, at
most one a core; 2460 us to find the zone after a crash, 477 us after closing
";

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    ask.refuse(&["--peers", "--only"], "")?;
    let mut rows = kill_all(ask, ask.rounds(QUICK_KILLS, FULL_KILLS), ask.form(QUICK_GIB, FULL_GIB))?;
    rows.extend(times(ask)?);
    let mut sheet = Sheet::new(ask, rows).measured()?;
    sheet.ratios(ratios, 3);
    draw(&mut sheet);
    let text = show(sheet.rows());
    sheet.findings(text)
}

fn kill_all(ask: &Ask<'_>, kills: usize, gib: usize) -> Result<Vec<Row>, String> {
    let program = (ask.tool)("craton-crash")?;
    let threads = processors().len().clamp(LEAST_THREADS, MOST_THREADS);
    let scratch = Scratch::new("zones of frames")?;
    let world = World::new(scratch.path(), gib * GIB, threads, SEED)?;
    let (mut rng, mut rows, mut closed) = (Rng::new(SEED, 0), Vec::new(), true);
    for run in 0..kills {
        if ask.stopped() {
            break;
        }
        ask.show("processes killed", OURS, run, (run, kills));
        let life = Duration::from_micros(rng.below(LONGEST_US).into());
        let early = rng.one_in(EARLY_OF);
        let words = [(gib * GIB).to_string(), threads.to_string(), run.to_string()];
        let left = if closed { "closed" } else { "crashed" };
        let mut command = Command::new(&program);
        command.arg(world.directory()).args(words).arg(left);
        let killed = kill(command, || if early { true } else { world.begun() == threads }, life);
        closed = rng.one_in(2);
        let found = killed.and_then(|()| world.inspect(closed));
        let is_wrong = found.is_err();
        rows.push(row(KILL, run, gib, threads, found));
        if is_wrong {
            break;
        }
    }
    Ok(rows)
}

fn kill(mut command: Command, has_begun: impl Fn() -> bool, life: Duration) -> Result<(), String> {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child =
        quiet.spawn().map_err(|e| format!("cannot start {}: {e}", Path::new(command.get_program()).display()))?;
    let start = Instant::now();
    let mut is_late = false;
    while !has_begun() && !is_late && matches!(child.try_wait(), Ok(None)) {
        is_late = start.elapsed() > PATIENCE;
        std::thread::sleep(Duration::from_micros(100));
    }
    std::thread::sleep(life);
    let ended = end(&mut child);
    if is_late { Err(format!("its threads had not begun after {} s", PATIENCE.as_secs())) } else { ended }
}

fn end(child: &mut Child) -> Result<(), String> {
    let _ = child.kill();
    let status = child.wait().map_err(|e| format!("cannot wait for the process: {e}"))?;
    if status.signal() == Some(libc::SIGKILL) {
        return Ok(());
    }
    let mut said = String::new();
    let _ = child.stderr.take().map(|mut stderr| stderr.read_to_string(&mut said));
    Err(format!("the process ended with {status}: {}", said.trim()))
}

fn times(ask: &Ask<'_>) -> Result<Vec<Row>, String> {
    let runs = ask.form(QUICK_TIMES, FULL_TIMES);
    let scratch = Scratch::new("zones of frames")?;
    let world = World::new(scratch.path(), TIMES_GIB * GIB, 1, SEED)?;
    let mut rows = Vec::new();
    for (run, workload) in (0..runs).flat_map(|run| [(run, CLOSED), (run, CRASHED)]) {
        if ask.stopped() {
            break;
        }
        ask.show(workload, OURS, run, (run, runs));
        let found = world.reopen(workload == CRASHED).and_then(|(opened, took)| {
            if (opened == Opened::Clean) == (workload == CLOSED) {
                Ok(Found { opened, took, operations: 0, audit: Default::default() })
            } else {
                Err(format!("found as {opened:?}"))
            }
        });
        rows.push(row(workload, run, TIMES_GIB, 1, found));
    }
    Ok(rows)
}

fn row(workload: &str, run: usize, gib: usize, threads: usize, found: Result<Found, String>) -> Row {
    let (status, found) = match found {
        Ok(found) => ("ok".to_owned(), Some(found)),
        Err(wrong) => (format!("failed: {wrong}"), None),
    };
    let audit = found.as_ref().map(|found| &found.audit);
    let (opened, corrected) = match found.as_ref().map(|found| found.opened) {
        Some(Opened::Clean) => ("closed", 0),
        Some(Opened::Recovered { corrected }) => ("crashed", corrected),
        None => ("", 0),
    };
    json!({
        "workload": workload,
        "allocator": OURS,
        "run": run,
        "memory_bytes": (gib as u64) << 30,
        "threads": threads,
        "opened": opened,
        "open_us": found.as_ref().map_or(0.0, |found| found.took.as_secs_f64() * 1e6),
        // Huge frames with a wrong entry.
        "corrected": corrected,
        "operations": found.as_ref().map_or(0, |found| found.operations),
        "requests_under_way": audit.map_or(0, |audit| audit.under_way),
        "requests_losing": audit.map_or(0, |audit| audit.losing),
        "lost_frames": audit.map_or(0, |audit| audit.lost.len()),
        "status": status,
    })
}

fn times_us(rows: &[Row], workload: &str, opened: &str) -> Vec<f64> {
    let wanted = [("workload", workload), ("opened", opened), ("status", "ok")];
    rows.iter().filter(|row| row.has(&wanted)).map(|row| row.num("open_us")).collect()
}

fn ratios(rows: &[Row]) -> Map {
    let median = |workload, opened| Spread::of(times_us(rows, workload, opened)).map(|spread| spread.median);
    let both = median(CLOSED, "closed").zip(median(CRASHED, "crashed"));
    both.map(|(closed, crashed)| ("open_closed_vs_crashed".to_owned(), closed / crashed)).into_iter().collect()
}

const COLUMNS: [Column; 6] = [
    ("", "workload", Show::Text),
    ("zone was left", "opened", Show::Text),
    ("times", "times", Show::Plain),
    ("us to find it", "median", Show::Fixed(0, "")),
    ("least", "min", Show::Fixed(0, "")),
    ("most", "max", Show::Fixed(0, "")),
];

fn show(rows: &[Row]) -> String {
    let kinds = [(KILL, "crashed"), (KILL, "closed"), (CRASHED, "crashed"), (CLOSED, "closed")];
    let line = |(workload, opened)| {
        let all = times_us(rows, workload, opened);
        let spread = Spread::of(all.iter().copied())?;
        let max = all.iter().copied().fold(0.0, f64::max);
        let (median, min) = (spread.median, spread.min);
        let times = all.len();
        Some(json!({
            "workload": workload, "opened": opened, "times": times, "median": median, "min": min, "max": max,
        }))
    };
    let lines: Vec<Row> = kinds.into_iter().filter_map(line).collect();
    let wrong = rows.iter().filter(|row| !row.is_ok());
    let wrong = wrong.map(|row| format!("{} {}: {}\n", row.word("workload"), row.int("run"), row.word("status")));
    format!("{}\n{}{}\n{PAPER}", table(&COLUMNS, &lines), losses(rows), wrong.collect::<String>())
}

fn losses(rows: &[Row]) -> String {
    let kills: Vec<&Row> = rows.iter().filter(|row| row.has(&[("workload", KILL), ("status", "ok")])).collect();
    let Some(first) = kills.first() else { return String::new() };
    let most = |field| kills.iter().map(|row| row.int(field)).max().unwrap_or(0);
    let with = |field| kills.iter().filter(|row| row.int(field) > 0).count();
    format!(
        "{} kills with {} threads, {} GiB; {} requests; {} kills with requests under way\n\
         {} kills lost frames; at most {} requests of one kill did, at most {} frames\n",
        kills.len(),
        first.int("threads"),
        first.int("memory_bytes") >> 30,
        count(kills.iter().map(|row| row.int("operations")).sum()),
        with("requests_under_way"),
        with("requests_losing"),
        most("requests_losing"),
        most("lost_frames"),
    )
}

const PAPER_US: [f64; 2] = [2460.0, 477.0];

fn draw(sheet: &mut Sheet) {
    let of = |workload: &str, opened, paper_us: f64| {
        let ours = Spread::of(times_us(sheet.rows(), workload, opened)).map(|spread| spread.median);
        let bars = [ours, Some(paper_us)].map(|us| us.map(|us| Estimate::exact(us / 1e6))).to_vec();
        Group { name: workload.to_owned(), bars }
    };
    let groups = vec![of(CRASHED, "crashed", PAPER_US[0]), of(CLOSED, "closed", PAPER_US[1])];
    let title = Title("", "Time to find a zone again", "metadata of 128 GiB, medians; the paper's machine is another");
    let series = [OURS, "the paper"].map(str::to_owned);
    sheet.bars(title, Axis::linear("time", Unit::Seconds), &series, groups, None);
}

#[cfg(test)]
mod tests;
