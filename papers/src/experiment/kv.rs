//! `kv`: craton-kv beside redis-server, in turns (docs/experiments.md).
//!
//! Redis with `everysec` may lose the last second, and yet stands beside `--sync always`: with
//! `--sync 1000` each client would wait a second for each reply. Files lie in the temporary
//! directory, which should be on a disk.

mod server;

use super::sheet::{Column, Fields, Map, Row, Sheet, Show, Title, by, distinct, geomean, groups, json, pairs, table};
use super::{Ask, Findings};
use craton_lab::picture::{Axis, Unit};
use craton_lab::scratch::Scratch;
use craton_lab::summary::Spread;
use server::{Running, Server};
use std::path::Path;

const FULL_ROUNDS: usize = 5;
const FULL_REQUESTS: u64 = 200_000;
const QUICK_REQUESTS: u64 = 2000;
/// Keys that the restart finds.
const FULL_KEYS: u64 = 1_000_000;

/// Commands at a time.
const PIPELINES: [u64; 2] = [1, 16];
const RESTART: &str = "restart";

/// Ours promises as much, or more.
const PAIRS: [(Server, Server); 3] = [
    (Server::CratonAlways, Server::RedisAlways),
    (Server::CratonAlways, Server::RedisSecond),
    (Server::Craton, Server::Redis),
];

const COLUMNS: [Column; 9] = [
    ("load", "workload", Show::Text),
    ("server", "allocator", Show::Text),
    ("requests/s", "per_s", Show::Count),
    ("least", "per_s_min", Show::Count),
    ("most", "per_s_max", Show::Count),
    ("written for a request", "written_bytes", Show::Fixed(0, " B")),
    ("ms to the first GET", "restart_ms", Show::Fixed(1, "")),
    ("keys", "keys", Show::Count),
    ("", "status", Show::Status),
];

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    ask.refuse(&["--peers"], ", which compares servers")?;
    let names: Vec<String> = PIPELINES.map(load).into_iter().chain([RESTART.to_owned()]).collect();
    ask.known("load", &names)?;
    let mut servers = Vec::new();
    for server in PAIRS.into_iter().flat_map(|(ours, theirs)| [ours, theirs]) {
        if !servers.contains(&server) {
            servers.push(server);
        }
    }
    let programs = server::Programs::find(ask.tool)?;
    let mut rows = Vec::new();
    for pipeline in PIPELINES.into_iter().filter(|pipeline| ask.wants(&load(*pipeline))) {
        let rounds = ask.rounds(1, FULL_ROUNDS);
        let mut found: Vec<Vec<Result<Speed, String>>> = vec![Vec::new(); servers.len()];
        for done in 0..rounds * servers.len() {
            let (round, place) = (done / servers.len(), done % servers.len());
            if ask.stopped() {
                break;
            }
            ask.show(&load(pipeline), servers[place].name(), round, (done, rounds * servers.len()));
            let requests = ask.form(QUICK_REQUESTS, if pipeline == 1 { FULL_REQUESTS / 4 } else { FULL_REQUESTS });
            found[place].push(speed(&programs, servers[place], requests, pipeline));
        }
        rows.extend(servers.iter().zip(&found).filter_map(|(server, found)| speed_row(*server, pipeline, found)));
    }
    if ask.wants(RESTART) {
        for server in &servers {
            if ask.stopped() {
                break;
            }
            ask.show(RESTART, server.name(), 0, (0, servers.len()));
            let keys = ask.form(QUICK_REQUESTS, FULL_KEYS);
            rows.push(restart_row(*server, restart(&programs, *server, keys, ask.rounds(1, FULL_ROUNDS))));
        }
    }
    findings(ask, rows)
}

fn load(pipeline: u64) -> String {
    format!("set-{pipeline}")
}

#[derive(Clone, Copy, Debug)]
struct Speed {
    per_s: f64,
    written_bytes: f64,
}

fn speed(programs: &server::Programs, server: Server, requests: u64, pipeline: u64) -> Result<Speed, String> {
    let folder = Scratch::new("a server's files")?;
    let running = Running::start(programs, server, folder.path())?;
    let before = running.written_bytes();
    let per_s = running.benchmark(requests, requests, pipeline)?;
    running.sync_files(folder.path());
    let written = running.written_bytes().saturating_sub(before);
    Ok(Speed { per_s, written_bytes: written as f64 / requests as f64 })
}

/// Keys found, and times to the first GET.
fn restart(programs: &server::Programs, server: Server, keys: u64, rounds: usize) -> Result<(u64, Vec<f64>), String> {
    let folder = Scratch::new("a server's files")?;
    let running = Running::start(programs, server, folder.path())?;
    running.benchmark(keys, keys.saturating_mul(1000), 16)?;
    running.settle(server);
    running.kill();
    let again = |folder: &Path| {
        let (running, ms) = Running::restart(programs, server, folder)?;
        let keys = running.keys()?;
        running.kill();
        Ok((keys, ms))
    };
    let all = (0..rounds).map(|_| again(folder.path())).collect::<Result<Vec<_>, String>>()?;
    let found = all.iter().map(|(keys, _)| *keys).min().unwrap_or(0);
    Ok((found, all.into_iter().map(|(_, ms)| ms).collect()))
}

fn status<T>(found: &Result<T, String>) -> String {
    found.as_ref().err().map_or("ok".to_owned(), |why| format!("failed: {why}"))
}

fn speed_row(server: Server, pipeline: u64, found: &[Result<Speed, String>]) -> Option<Row> {
    let good = || found.iter().flatten();
    let per_s = Spread::of(good().map(|speed| speed.per_s));
    let failed = found.iter().find(|found| found.is_err());
    let row = || {
        json!({
            "workload": load(pipeline),
            "allocator": server.name(),
            "rounds": good().count(),
            "per_s": per_s.map(|of| of.median as u64),
            "per_s_min": good().map(|speed| speed.per_s as u64).min(),
            "per_s_max": good().map(|speed| speed.per_s as u64).max(),
            "us_per_request": per_s.map(|of| 1e6 / of.median),
            "written_bytes": Spread::of(good().map(|speed| speed.written_bytes)).map(|of| of.median),
            "status": failed.map_or("ok".to_owned(), status),
        })
    };
    (!found.is_empty()).then(row)
}

fn restart_row(server: Server, found: Result<(u64, Vec<f64>), String>) -> Row {
    let times = found.as_ref().ok().map(|(_, times)| times.clone()).unwrap_or_default();
    json!({
        "workload": RESTART,
        "allocator": server.name(),
        "rounds": times.len(),
        "restart_ms": Spread::of(times).map(|of| of.median),
        "keys": found.as_ref().ok().map(|(keys, _)| *keys),
        "status": status(&found),
    })
}

/// Ours by theirs of the same promise.
fn ratios(rows: &[Row]) -> Map {
    let mut ratios = Map::new();
    for (ours, theirs) in PAIRS {
        for (figure, name) in [("us_per_request", "time"), ("restart_ms", "restart"), ("written_bytes", "written")] {
            for load in distinct(rows, |row| row.word("workload")) {
                let of = |server: Server| move |row: &Row| row.has(&[("allocator", server.name()), ("workload", load)]);
                let found = pairs(rows, figure, (&of(ours), &of(theirs)), &["workload"]);
                if !found.is_empty() {
                    ratios.insert(format!("{load}_{name}_{}_vs_{}", ours.name(), theirs.name()), geomean(&found));
                }
            }
        }
    }
    ratios
}

fn findings(ask: &Ask<'_>, rows: Vec<Row>) -> Result<Findings, String> {
    let mut sheet = Sheet::new(ask, rows).measured()?;
    let ratios = sheet.ratios(ratios, 3);
    let names = distinct(sheet.rows(), |row| row.word("allocator").to_owned());
    let of = |restart: bool| {
        let wanted = move |row: &&Row| (row.word("workload") == RESTART) == restart;
        sheet.rows().iter().filter(wanted).cloned().collect::<Vec<Row>>()
    };
    let (speeds, restarts) = (of(false), of(true));
    let bars = |rows: &[Row], field: &'static str, unit: f64| {
        groups(rows, by("workload"), (&names, by("allocator")), |row| row.num(field) * unit)
    };
    if !speeds.is_empty() {
        let title = Title("", "SET: requests per second", "50 clients, values of 64 bytes; medians");
        sheet.bars(title, Axis::log("requests per second", Unit::Count), &names, bars(&speeds, "per_s", 1.0), None);
    }
    if !restarts.is_empty() {
        let title = Title("restart", "Time to the first GET after a kill", "medians");
        sheet.bars(title, Axis::log("time", Unit::Seconds), &names, bars(&restarts, "restart_ms", 1e-3), None);
    }
    let text = format!("{}\n{ratios}\nthe paper's figures: none\n", table(&COLUMNS, sheet.rows()));
    sheet.findings(text)
}

#[cfg(test)]
mod tests;
