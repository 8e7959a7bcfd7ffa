//! What requests ask: the page, metrics, JSON.
//!
//! **Cost.** The map and the profile are read when a page asks for them. An answer is kept for
//! [`FRESH`], and for [`SHARE`] times what it took, so that many pages cost no more than one.

use crate::assets;
use crate::flame::{functions, tree};
use crate::host::Hosts;
use crate::http::{Answer, Handle, Request};
use crate::metrics::{self, GROUPS, groups};
use crate::processes::{COUNTERS, Process, Processes, lock, now_ms};
use crate::sentence::{sentences, warnings};
use craton_inspect::{Hugepage, Ledger, Measure};
use craton_tables::counters::PROCESS;
use craton_tables::options::OPTIONS;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

const FRESH: Duration = Duration::from_secs(2);
const SHARE: u32 = 60;
const MOST_KEPT: usize = 32;

#[derive(Debug)]
pub struct Api {
    pub processes: Arc<Processes>,
    pub hosts: Hosts,
    pub experiment: Option<String>,
    /// Between two samples, at best.
    pub every: Duration,
}

/// Status and sentence.
type Wrong = (u16, String);

impl Handle for Api {
    fn answer(&self, request: &Request) -> Answer {
        let Some(host) = &request.host else {
            return Answer::wrong(400, "the request names no host; HTTP/1.1 asks for it");
        };
        if !self.hosts.allows(host) {
            let shown: String = host.chars().filter(|c| !c.is_control()).take(100).collect();
            let why = format!(
                "the request is for the host \"{shown}\", which is none of this program's; if it is right, start \
                 `craton serve` with --host {shown}"
            );
            return Answer::wrong(403, &why);
        }
        let words: Vec<&str> = request.path.split('/').skip(1).collect();
        let done = match words.as_slice() {
            ["metrics"] => Ok(self.metrics()),
            ["api"] | ["api", ""] => Ok(Answer::json(self.index().to_string())),
            ["api", "processes"] => Ok(Answer::json(self.list().to_string())),
            ["api", "processes", pid, rest @ ..] => self.process(pid, rest, request),
            ["api", ..] => Err((404, format!("there is no {}; /api lists what there is", request.path))),
            _ => return assets::find(&request.path),
        };
        done.unwrap_or_else(|(status, why)| Answer::wrong(status, &why))
    }
}

impl Api {
    fn metrics(&self) -> Answer {
        let running: Vec<Process> = self.processes.all().into_iter().filter(|p| p.ended.is_none()).collect();
        let text = metrics::text(&running, self.experiment.as_deref());
        Answer::new(200, metrics::CONTENT_TYPE, text.into_bytes())
    }

    fn index(&self) -> Value {
        json!({
            "program": "craton serve", "version": env!("CARGO_PKG_VERSION"),
            "paths": {
                "/api/processes": "the processes on Craton",
                "/api/processes/PID": "one: ledger, size classes, counters, options",
                "/api/processes/PID/history?since=MS": "the ledger over time",
                "/api/processes/PID/map": "each hugepage of the heap",
                "/api/processes/PID/map/N": "the spans on a hugepage",
                "/api/processes/PID/profile?measure=NAME&at=MS&since=MS":
                    "the heap profile: live, peak, total, short or captive; of a moment, and the difference to another",
                "/metrics": "all processes' numbers, for Prometheus",
            },
        })
    }

    fn list(&self) -> Value {
        let all = self.processes.all();
        let row = |p: &Process| {
            json!({
                "pid": p.pid, "exe": p.page.exe, "command": p.command, "ended": p.ended, "at_ms": p.at_ms,
                "rss_bytes": p.ledger.rss_bytes, "heap_bytes": p.ledger.heap_bytes, "groups": groups(&p.ledger),
            })
        };
        let rows: Vec<Value> = all.iter().map(row).collect();
        let unreadable: BTreeMap<String, String> =
            self.processes.unreadable().into_iter().map(|(pid, why)| (pid.to_string(), why)).collect();
        json!({
            "now_ms": now_ms(), "every_ms": self.every.as_millis() as u64, "experiment": self.experiment,
            "machine": crate::host::machine(), "processes": rows, "unreadable": unreadable,
        })
    }

    fn process(&self, pid: &str, rest: &[&str], request: &Request) -> Result<Answer, Wrong> {
        let number = pid.parse().map_err(|_| (404, "the number of a process is missing in the path".to_owned()))?;
        let gone = || {
            (
                404,
                format!(
                    "process {number} is not watched: it is not on Craton, has no request yet, or must not be read"
                ),
            )
        };
        let process = self.processes.find(number).ok_or_else(gone)?;
        let text: Arc<str> = match rest {
            [] => one(&process).to_string().into(),
            ["history"] => history(&process, time(request, "since")?.unwrap_or(0)).to_string().into(),
            ["map"] => kept(&process, "map".to_owned(), SHARE, map)?,
            ["map", hugepage] => {
                let number = hugepage.parse().map_err(|_| (404, format!("\"{hugepage}\" is no hugepage's number")))?;
                kept(&process, format!("map/{number}"), SHARE, |process| spans(process, number))?
            }
            ["profile"] => {
                let measure = measure_of(request.value("measure").unwrap_or("live"))?;
                let (at, since) = (time(request, "at")?, time(request, "since")?);
                let key = format!("{measure:?} {at:?} {since:?}");
                // Names take time once; the rest is short, but for captive bytes.
                let share = if measure == Measure::Captive { SHARE } else { 0 };
                kept(&process, key, share, |process| profile(process, measure, at, since))?
            }
            _ => return Err((404, format!("there is no {}; /api lists what there is", request.path))),
        };
        Ok(Answer::json(text.to_string()))
    }
}

fn time(request: &Request, name: &str) -> Result<Option<u64>, Wrong> {
    let Some(text) = request.value(name) else { return Ok(None) };
    text.parse().map(Some).map_err(|_| (400, format!("{name}={text}: give milliseconds since 1970")))
}

/// From before, if fresh: for `share` times what it took.
fn kept(
    process: &Process,
    key: String,
    share: u32,
    act: impl FnOnce(&Process) -> Result<Value, Wrong>,
) -> Result<Arc<str>, Wrong> {
    let mut kept = lock(&process.kept);
    if let Some((at, cost, text)) = kept.get(&key)
        && at.elapsed() < FRESH.max(*cost * share)
    {
        return Ok(Arc::clone(text));
    }
    let since = Instant::now();
    let text: Arc<str> = act(process)?.to_string().into();
    if kept.len() >= MOST_KEPT {
        kept.clear();
    }
    kept.insert(key, (Instant::now(), since.elapsed(), Arc::clone(&text)));
    Ok(text)
}

fn one(process: &Process) -> Value {
    let (page, ledger) = (&process.page, &process.ledger);
    let row = |row: &craton_inspect::Row| json!({ "name": row.name, "bytes": row.bytes, "text": row.text });
    let rows = |rows: &[craton_inspect::Row]| rows.iter().map(row).collect::<Vec<_>>();
    let group = |(name, text, rows): &(&str, &str, &[&str])| json!({ "name": name, "text": text, "rows": rows });
    let set = |key: &str| page.options.iter().find(|(name, _)| *name == key).map(|(_, value)| value.clone());
    let options: BTreeMap<&str, Value> = OPTIONS
        .iter()
        .map(|row| {
            let value = set(row.key);
            (
                row.key,
                json!({ "value": value.clone().unwrap_or_else(|| row.default.to_owned()), "set": value.is_some() }),
            )
        })
        .collect();
    let counters: Vec<Value> = PROCESS
        .iter()
        .map(|counter| {
            json!({
                "name": counter.name, "value": page.number(counter.name), "unit": counter.unit.name(),
                "text": counter.text.replace('`', ""),
            })
        })
        .collect();
    json!({
        "pid": process.pid, "exe": page.exe, "command": process.command, "ended": process.ended,
        "threads": process.threads, "at_ms": process.at_ms,
        "sentences": sentences(process), "warnings": warnings(process),
        "rss_bytes": ledger.rss_bytes, "pss_bytes": ledger.pss_bytes, "swap_bytes": ledger.swap_bytes,
        "heap_bytes": ledger.heap_bytes,
        "groups": GROUPS.iter().map(group).collect::<Vec<_>>(), "sums": groups(ledger),
        "heap": rows(&ledger.heap), "rest": rows(&ledger.rest), "classes": ledger.classes,
        "counters": counters, "options": options,
    })
}

fn history(process: &Process, since: u64) -> Value {
    let history = lock(&process.history);
    let point = |(at, point): &(u64, crate::processes::Point)| {
        let mut row = vec![*at, point.rss_bytes, point.pss_bytes];
        row.extend(point.rows);
        row.extend(point.counters);
        row
    };
    let columns: Vec<&str> =
        ["at_ms", "rss_bytes", "pss_bytes"].into_iter().chain(Ledger::ROWS).chain(COUNTERS).collect();
    let points: Vec<Vec<u64>> = history.since(since).iter().map(point).collect();
    json!({ "columns": columns, "points": points, "ended": process.ended })
}

fn watch_of(process: &Process) -> Result<&craton_inspect::Watch, Wrong> {
    process.watch.as_deref().ok_or_else(|| (410, process.ended.clone().unwrap_or_default()))
}

/// A list for each hugepage, since there may be thousands: place, bytes used, bytes kept, memory,
/// flags, spans.
fn map(process: &Process) -> Result<Value, Wrong> {
    let map = watch_of(process)?.hugepages().map_err(|why| (410, why))?;
    let flags = |h: &Hugepage| {
        let all = [h.is_huge, h.is_broken, h.is_guarded, h.is_donated];
        all.iter().enumerate().map(|(i, flag)| u32::from(*flag) << i).sum::<u32>()
    };
    let cell = |h: &Hugepage| {
        json!([
            h.place as u8,
            u64::from(h.used_pages) * map.page_bytes,
            u64::from(h.kept_pages) * map.page_bytes,
            h.resident_bytes,
            flags(h),
            h.spans
        ])
    };
    // The end was never used.
    let is_used = |h: &&Hugepage| **h != Hugepage::default();
    let last = map.all.iter().rposition(|h| is_used(&h)).map_or(0, |last| last + 1);
    Ok(json!({
        "at_ms": now_ms(), "base": format!("{:#x}", map.base), "page_bytes": map.page_bytes,
        "hugepage_bytes": map.hugepage_bytes, "count": map.all.len(),
        "columns": ["place", "used_bytes", "kept_bytes", "resident_bytes", "flags", "spans"],
        "places": ["unbacked", "cached", "dense", "sparse", "large", "region"],
        "flags": ["huge", "broken", "guarded", "donated"],
        "hugepages": map.all[..last].iter().map(cell).collect::<Vec<_>>(),
    }))
}

fn spans(process: &Process, hugepage: u64) -> Result<Value, Wrong> {
    let spans = watch_of(process)?.spans_on(hugepage).map_err(|why| (410, why))?;
    Ok(json!({ "hugepage": hugepage, "spans": spans }))
}

fn measure_of(name: &str) -> Result<Measure, Wrong> {
    match name {
        "live" => Ok(Measure::Live),
        "peak" => Ok(Measure::Peak),
        "total" => Ok(Measure::Total),
        "short" => Ok(Measure::Short),
        "captive" => Ok(Measure::Captive),
        _ => Err((400, format!("measure={name}: there are live, peak, total, short and captive"))),
    }
}

/// The records of `debug=audit` take the place of samples.
fn unknown_under_audit(measure: Measure) -> &'static str {
    match measure {
        Measure::Captive => {
            "captive bytes do not exist under debug=audit, which takes no samples; ask for what lives (`live`), or run \
             without audit"
        }
        _ => "debug=audit knows what lives and no past; ask for what lives (`live`), or run without audit",
    }
}

fn profile(process: &Process, measure: Measure, at: Option<u64>, since: Option<u64>) -> Result<Value, Wrong> {
    // Captive bytes are those of now.
    let at = at.filter(|_| measure != Measure::Captive);
    if measure == Measure::Captive {
        watch_of(process)?;
    }
    let mut moments = lock(&process.moments);
    if at.is_none()
        && let Some(watch) = process.watch.as_deref()
    {
        moments.look(watch);
    }
    let none = moments.why.clone().unwrap_or_else(|| "there is no sample yet".to_owned());
    let (mut now, mut moment) = moments.at(at.unwrap_or(u64::MAX)).ok_or((404, none))?;
    if measure != Measure::Live && moment.exact_objects > 0 {
        return Err((400, unknown_under_audit(measure).to_owned()));
    }
    if measure == Measure::Captive {
        (now, moment) = moments.captive(watch_of(process)?).map_err(|why| (410, why))?;
    }
    let mut stacks = moments.stacks(&moment);
    let before = since.and_then(|since| moments.at(since)).filter(|_| measure != Measure::Captive);
    if let Some((_, old)) = &before {
        stacks = stacks.since(&moments.stacks(old));
    }
    let sum = stacks.sum().get(measure);
    Ok(json!({
        "at_ms": now, "since_ms": before.map(|(at, _)| at), "measure": format!("{measure:?}").to_lowercase(),
        "moments": moments.times(), "interval_bytes": moment.interval, "samples": moment.samples,
        "live_samples": moment.live_samples, "dropped_samples": moment.dropped, "exact_objects": moment.exact_objects,
        "bytes": sum.bytes, "objects": sum.objects,
        "functions": functions(&stacks, measure), "tree": tree(&stacks, measure),
    }))
}
