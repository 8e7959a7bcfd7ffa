//! `llfree-crash`: what is lost when processes are killed that allocate frames of a zone that persists.
//!
//! **What.** A process works with several threads on a zone in a file, and is killed (SIGKILL) at a random moment, now and then
//! while it still finds the zone. Here the zone is found again, and every frame compared with what the threads had written
//! down ([`crash`](crate::frames::crash)). The next process goes on with the same zone, closed or not, in turns. Besides: how
//! long it takes to find a zone again, after a crash and after it was closed.
//!
//! **From.** LLFree §5.7. There a file on persistent memory, here one under `TMPDIR`, which outlasts the process and not the
//! system; caches count as persistent there as well.
//!
//! **State.** Full: 1000 kills, 128 GiB. Quick: 50, 4 GiB. Times are of metadata of 128 GiB in both. A zone of which half is
//! allocated in blocks of all orders, which are nobody's; threads get and put an eighth besides.
//!
//! **Units.** Times in µs: of all that `open` does, the volatile part made anew as well, with the file mapped and in memory.
//!
//! **Failure.** A zone that is wrong, in the eyes of the process or of whoever looks afterwards, is a failed row, and nothing
//! comes after it.

use super::{Ask, Experiment, Findings, heading, no_use};
use crate::frames::GIB;
use crate::frames::crash::{Found, World};
use craton_frames::Opened;
use craton_lab::document::Document;
use craton_lab::format::{Column, count, table_of};
use craton_lab::machine::processors;
use craton_lab::measure::Progress;
use craton_lab::picture::{Axis, Bars, Direction, Estimate, Group, Unit};
use craton_lab::ratios::{OURS, Ratios};
use craton_lab::rng::Rng;
use craton_lab::scratch::Scratch;
use craton_lab::summary::Spread;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// The experiment, in the list.
pub const EXPERIMENT: Experiment = Experiment {
    name: "llfree-crash",
    about: "page frames: processes killed at random on a zone that persists: frames lost, and time to find it again",
    answers: "LLFree §5.7",
    run,
};

const FULL_KILLS: usize = 1000;
const QUICK_KILLS: usize = 50;
const FULL_GIB: usize = 128;
const QUICK_GIB: usize = 4;
/// Of the metadata that times are of.
const TIMES_GIB: usize = 128;
const FULL_TIMES: usize = 101;
const QUICK_TIMES: usize = 21;
const LEAST_THREADS: usize = 2;
const MOST_THREADS: usize = 16;
/// A process, of so many, may be killed before it has found the zone.
const EARLY_OF: u32 = 8;
/// The longest that a process lives, once its threads have begun.
const LONGEST_US: u32 = 20_000;
/// The longest that it may take until they have.
const PATIENCE: Duration = Duration::from_secs(60);
const SEED: u64 = 1;

const KILL: &str = "kill";
const CRASHED: &str = "after a crash";
const CLOSED: &str = "after closing";

const PAPER: &str = "\
the paper's figures, 128 GiB on persistent memory, a Xeon Gold 5320, one thread: 1000 crashes, frames lost in about half of them, at
most one a core; 2460 us to find the zone after a crash, 477 us after closing
";

/// A row of the document.
#[derive(Clone, Debug, Serialize)]
struct CrashRow {
    workload: &'static str,
    allocator: &'static str,
    run: usize,
    memory_bytes: u64,
    threads: usize,
    /// How the zone was found.
    opened: &'static str,
    /// How long that took.
    open_us: f64,
    /// Huge frames whose entry was wrong.
    corrected: usize,
    /// Requests that the process had done.
    operations: u64,
    requests_under_way: usize,
    requests_losing: usize,
    lost_frames: usize,
    status: String,
}

fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    let option = [(ask.peers_asked, "--peers"), (!ask.only.is_empty(), "--only")].into_iter().find(|(asked, _)| *asked);
    if let Some((_, option)) = option {
        return Err(no_use(option, EXPERIMENT.name));
    }
    let kills = ask.runs.unwrap_or(if ask.quick { QUICK_KILLS } else { FULL_KILLS });
    let mut rows = kill_all(ask, kills, if ask.quick { QUICK_GIB } else { FULL_GIB })?;
    rows.extend(times(ask)?);
    findings(ask, rows)
}

/// Kills processes, one after the other, until a zone is wrong.
fn kill_all(ask: &Ask<'_>, kills: usize, gib: usize) -> Result<Vec<CrashRow>, String> {
    let program = (ask.tool)("craton-crash")?;
    let threads = processors().len().clamp(LEAST_THREADS, MOST_THREADS);
    let scratch = Scratch::new("zones of frames")?;
    let world = World::new(scratch.path(), gib * GIB, threads, SEED)?;
    let (mut rng, mut rows, mut closed) = (Rng::new(SEED, 0), Vec::new(), true);
    for run in 0..kills {
        if ask.stop.load(Relaxed) {
            break;
        }
        (ask.progress)("processes killed", Progress { allocator: OURS, round: Some(run), done: run, total: kills });
        let life = Duration::from_micros(rng.below(LONGEST_US).into());
        let early = rng.one_in(EARLY_OF);
        let words = [(gib * GIB).to_string(), threads.to_string(), run.to_string()];
        let left = if closed { "closed" } else { "crashed" };
        let mut command = Command::new(&program);
        command.arg(world.directory()).args(words).arg(left);
        let killed = kill(command, || if early { true } else { world.begun() == threads }, life);
        closed = rng.one_in(2);
        let found = killed.and_then(|()| world.look(closed));
        let is_wrong = found.is_err();
        rows.push(row(KILL, run, gib, threads, found));
        if is_wrong {
            break;
        }
    }
    Ok(rows)
}

/// Starts a process, and kills it a while after it has begun.
///
/// # Errors
/// It ended before, with what it said; or never began.
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

/// Kills a process; an error if it had ended before.
fn end(child: &mut Child) -> Result<(), String> {
    // It may have ended, which its status says.
    let _ = child.kill();
    let status = child.wait().map_err(|e| format!("cannot wait for the process: {e}"))?;
    if status.signal() == Some(libc::SIGKILL) {
        return Ok(());
    }
    let mut said = String::new();
    let _ = child.stderr.take().map(|mut stderr| stderr.read_to_string(&mut said));
    Err(format!("the process ended with {status}: {}", said.trim()))
}

/// Finds one zone again and again, after crashes and after it was closed.
fn times(ask: &Ask<'_>) -> Result<Vec<CrashRow>, String> {
    let runs = if ask.quick { QUICK_TIMES } else { FULL_TIMES };
    let scratch = Scratch::new("zones of frames")?;
    let world = World::new(scratch.path(), TIMES_GIB * GIB, 1, SEED)?;
    // It is closed at first.
    let mut rows = Vec::new();
    for (run, workload) in (0..runs).flat_map(|run| [(run, CLOSED), (run, CRASHED)]) {
        if ask.stop.load(Relaxed) {
            break;
        }
        let progress = Progress { allocator: OURS, round: Some(run), done: run, total: runs };
        (ask.progress)(workload, progress);
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

fn row(workload: &'static str, run: usize, gib: usize, threads: usize, found: Result<Found, String>) -> CrashRow {
    let (status, found) = match found {
        Ok(found) => ("ok".to_owned(), Some(found)),
        Err(wrong) => (format!("failed: {wrong}"), None),
    };
    let opened = found.as_ref().map(|found| found.opened);
    let audit = found.as_ref().map(|found| &found.audit);
    CrashRow {
        workload,
        allocator: OURS,
        run,
        memory_bytes: (gib as u64) << 30,
        threads,
        opened: match opened {
            Some(Opened::Clean) => "closed",
            Some(Opened::Recovered { .. }) => "crashed",
            None => "",
        },
        open_us: found.as_ref().map_or(0.0, |found| found.took.as_secs_f64() * 1e6),
        corrected: if let Some(Opened::Recovered { corrected }) = opened { corrected } else { 0 },
        operations: found.as_ref().map_or(0, |found| found.operations),
        requests_under_way: audit.map_or(0, |audit| audit.under_way),
        requests_losing: audit.map_or(0, |audit| audit.losing),
        lost_frames: audit.map_or(0, |audit| audit.lost.len()),
        status,
    }
}

fn findings(ask: &Ask<'_>, rows: Vec<CrashRow>) -> Result<Findings, String> {
    if rows.is_empty() {
        return Err("nothing was measured".to_owned());
    }
    let mut document = Document::new(EXPERIMENT.name, ask.command, &[], rows, &Ratios::default());
    document.ratios = ratios(&document.rows);
    Ok(Findings {
        text: show(&document.rows),
        pictures: vec![(String::new(), picture(&document))],
        failed: document.rows.iter().filter(|row| row.status != "ok").count(),
        document: super::text(&document)?,
    })
}

/// Rows that are right, of a workload and of zones that were found so.
fn good<'a>(rows: &'a [CrashRow], workload: &'a str, opened: &'a str) -> impl Iterator<Item = &'a CrashRow> {
    rows.iter().filter(move |row| row.workload == workload && row.opened == opened && row.status == "ok")
}

fn spread<'a>(rows: impl Iterator<Item = &'a CrashRow>) -> Option<Spread> {
    Spread::of(rows.map(|row| row.open_us))
}

/// Time to find a closed zone as a part of that after a crash; the share of kills that lost frames.
fn ratios(rows: &[CrashRow]) -> BTreeMap<String, f64> {
    let mut ratios = BTreeMap::new();
    if let (Some(closed), Some(crashed)) =
        (spread(good(rows, CLOSED, "closed")), spread(good(rows, CRASHED, "crashed")))
    {
        ratios.insert("open_closed_vs_crashed".to_owned(), closed.median / crashed.median);
    }
    ratios
}

/// How a kind of finding went.
struct Line {
    workload: &'static str,
    opened: &'static str,
    runs: usize,
    median: f64,
    min: f64,
    max: f64,
}

fn show(rows: &[CrashRow]) -> String {
    let kinds = [(KILL, "crashed"), (KILL, "closed"), (CRASHED, "crashed"), (CLOSED, "closed")];
    let line = |(workload, opened)| {
        let all: Vec<f64> = good(rows, workload, opened).map(|row| row.open_us).collect();
        let spread = Spread::of(all.iter().copied())?;
        let max = all.iter().copied().fold(0.0, f64::max);
        Some(Line { workload, opened, runs: all.len(), median: spread.median, min: spread.min, max })
    };
    let lines: Vec<Line> = kinds.into_iter().filter_map(line).collect();
    let columns: [Column<Line>; 6] = [
        ("", |line| line.workload.to_owned()),
        ("zone was left", |line| line.opened.to_owned()),
        ("times", |line| line.runs.to_string()),
        ("us to find it", |line| format!("{:.0}", line.median)),
        ("least", |line| format!("{:.0}", line.min)),
        ("most", |line| format!("{:.0}", line.max)),
    ];
    let wrong = rows.iter().filter(|row| row.status != "ok");
    let wrong: String = wrong.map(|row| format!("{} {}: {}\n", row.workload, row.run, row.status)).collect();
    format!("{}\n{}{wrong}\n{PAPER}", table_of(&columns, &[0, 1], &lines), losses(rows))
}

fn losses(rows: &[CrashRow]) -> String {
    let kills: Vec<&CrashRow> = rows.iter().filter(|row| row.workload == KILL && row.status == "ok").collect();
    let Some(first) = kills.first() else { return String::new() };
    let most = |of: fn(&CrashRow) -> usize| kills.iter().map(|row| of(row)).max().unwrap_or(0);
    let with = |of: fn(&CrashRow) -> usize| kills.iter().filter(|row| of(row) > 0).count();
    format!(
        "{} kills with {} threads, {} GiB; {} requests; {} kills with requests under way\n\
         {} kills lost frames; at most {} requests of one kill did, at most {} frames\n",
        kills.len(),
        first.threads,
        first.memory_bytes >> 30,
        count(kills.iter().map(|row| row.operations).sum()),
        with(|row| row.requests_under_way),
        with(|row| row.requests_losing),
        most(|row| row.requests_losing),
        most(|row| row.lost_frames),
    )
}

/// The paper's times, in µs.
const PAPER_US: [f64; 2] = [2460.0, 477.0];

fn picture(document: &Document<CrashRow>) -> String {
    let of = |workload: &str, opened, paper: f64| Group {
        name: workload.to_owned(),
        bars: vec![
            spread(good(&document.rows, workload, opened)).map(|spread| Estimate::exact(spread.median / 1e6)),
            Some(Estimate::exact(paper / 1e6)),
        ],
    };
    Bars {
        heading: heading(
            "Time to find a zone again",
            "metadata of 128 GiB, medians; the paper's machine is another",
            document,
        ),
        axis: Axis::linear("time", Unit::Seconds),
        series: vec![OURS.to_owned(), "the paper".to_owned()],
        groups: vec![of(CRASHED, "crashed", PAPER_US[0]), of(CLOSED, "closed", PAPER_US[1])],
        reference: None,
        direction: Direction::Right,
        width_px: 760.0,
    }
    .svg()
}

#[cfg(test)]
mod tests;
