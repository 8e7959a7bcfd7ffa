//! `wild`: programs as other people write them, on every allocator (docs/experiments.md). A program
//! that the kernel kills in its group is no failure.

use super::sheet::{Fields, Map, Row, Sheet, Title, distinct, geomean, json, lines, with};
use super::tool::{NOT_SERVED, Tool};
use super::{Ask, Findings};
use crate::backed::back;
use crate::wild::PROGRAMS;
use crate::wild::group::Group;
use craton_lab::format;
use craton_lab::measure::Allocator;
use craton_lab::picture::{Axis, Estimate, Group as Bars, Unit};
use craton_lab::ratios::{BASE, OURS, Ratios};
use craton_lab::summary::Spread;
use std::collections::BTreeMap;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(600);
const ROUNDS: usize = 3;
/// More than most programs use; see [`crate::backed`].
const BACKED: usize = 2 << 30;

/// In MiB.
const GROUPS: [(&str, u64); 5] =
    [("sparse-256k", 64), ("sparse-calloc", 64), ("sparse-20m", 64), ("sparse-60m", 64), ("stress", 256)];
/// Only if named: that takes all free memory.
const FRAGMENTED: [&str; 3] = ["dense-1000", "dense-256k", "pauses"];
const IN_FRAGMENTS: &str = "@fragmented";
const WAIT: [&str; 4] = ["idle", "swing", "fork", "dense"];
/// The quick form leaves them out: others are like them.
const SLOW: [&str; 10] = [
    "idle",
    "idle-worker",
    "swing-5",
    "swing-20",
    "swing-60",
    "fork-busy",
    "sparse-malloc",
    "dense-1000",
    "dense-40k",
    "dense-20m",
];

/// By the beginning of names; less is better except for coverage.
const FIGURES: &[(&str, &[&str])] = &[
    ("sparse", &["rss_bytes", "grown_bytes", "time_s"]),
    ("stress", &["peak_rss_bytes", "time_s"]),
    ("idle", &["ratio_after_10_s", "ratio_at_end"]),
    ("swing", &["trough_ratio", "rise_s", "peak_rss_bytes"]),
    ("fork", &["coverage_before", "coverage_after_fork", "coverage_after_10_s"]),
    ("dense", &["coverage_at_once", "coverage_later", "time_s", "rss_bytes"]),
    ("larson", &["time_s", "cpu_s", "peak_rss_bytes"]),
    ("strides", &["time_s", "cpu_s", "peak_rss_bytes"]),
    ("blocks", &["time_s", "cpu_s", "peak_rss_bytes"]),
    ("pairs", &["mean_growth_bytes", "worst_growth_bytes"]),
    (
        "pauses",
        &[
            "malloc_16_longest_ns",
            "malloc_1024_longest_ns",
            "malloc_65536_longest_ns",
            "written_16_longest_ns",
            "written_1024_longest_ns",
            "written_65536_longest_ns",
            "malloc_1048576_p50_ns",
            "free_1048576_p50_ns",
        ],
    ),
    ("middle", &["malloc_1048576_p50_ns", "free_1048576_p50_ns"]),
    ("slots", &["peak_rss_bytes", "time_s"]),
];

struct Case {
    name: String,
    arguments: Vec<String>,
    rounds: usize,
}

fn cases(ask: &Ask<'_>) -> Vec<Case> {
    let grouped = GROUPS.iter().map(|(name, mib)| (*name, Some(*mib)));
    let all = PROGRAMS.iter().map(|program| (program.name, None)).chain(grouped);
    let case = |(program, mib): (&str, Option<u64>)| {
        let waits = WAIT.iter().any(|wait| program.starts_with(wait));
        let mut line = format!("{program} --percent {}", ask.form(5, 100));
        if waits && ask.quick {
            line += &format!(" --seconds {}", if program.starts_with("swing") { 2 } else { 1 });
        }
        line += &mib.map_or(String::new(), |mib| format!(" --group {mib}"));
        Case {
            name: mib.map_or(program.to_owned(), |mib| format!("{program}@{mib}")),
            arguments: line.split(' ').map(str::to_owned).collect(),
            rounds: ask.rounds(1, if waits { 1 } else { ROUNDS }),
        }
    };
    let fragmented = FRAGMENTED.iter().map(|program| {
        let mut of = case((*program, None));
        of.name += IN_FRAGMENTS;
        of.arguments.push("--fragmented".to_owned());
        of
    });
    all.map(case).chain(fragmented).collect()
}

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    let mut cases = cases(ask);
    ask.known("program", &cases.iter().map(|case| case.name.as_str()).collect::<Vec<_>>())?;
    let leave_out = |case: &Case| {
        ask.only.is_empty() && (case.name.ends_with(IN_FRAGMENTS) || ask.quick && SLOW.contains(&case.name.as_str()))
    };
    cases.retain(|case| ask.wants(&case.name) && !leave_out(case));
    let mut note = String::new();
    let is_grouped = |case: &Case| case.name.contains('@') && !case.name.ends_with(IN_FRAGMENTS);
    if cases.iter().any(is_grouped)
        && let Err(why) = Group::new(64 << 20)
    {
        note = format!("not measured in control groups: {why}\n");
        cases.retain(|case| !is_grouped(case));
    }
    let few = |of: &&Allocator| !ask.quick || ask.peers_asked || [BASE, OURS].contains(&of.name.as_str());
    let allocators: Vec<Allocator> = ask.allocators.iter().filter(few).cloned().collect();
    let rows = measure(ask, &allocators, &cases)?;
    let mut sheet = Sheet::new(ask, rows).measured()?.compared(&allocators, &Ratios::default());
    let ratios = sheet.ratios(ratios, 2);
    let means: Vec<&str> = ratios.lines().filter(|line| line.starts_with("all_")).collect();
    draw(&mut sheet);
    let text = format!(
        "medians over rounds; {OURS} by {BASE}, and by the best other allocator\n\n{}\n{note}{}\n",
        show(sheet.rows()),
        means.join("\n")
    );
    sheet.findings(text)
}

fn measure(ask: &Ask<'_>, allocators: &[Allocator], cases: &[Case]) -> Result<Vec<Row>, String> {
    let tool = Tool::new(ask, "craton-wild", LIMIT)?;
    let total = cases.iter().map(|case| case.rounds * allocators.len()).sum();
    let (mut rows, mut done) = (Vec::new(), 0);
    let mut given_up: BTreeMap<&str, String> = BTreeMap::new();
    for case in cases {
        let mut found: Vec<Result<Vec<Row>, String>> = vec![Ok(Vec::new()); allocators.len()];
        for round in 0..case.rounds {
            for (allocator, found) in allocators.iter().zip(&mut found) {
                ask.show(&case.name, &allocator.name, round, (done, total));
                done += 1;
                if let Some(why) = given_up.get(allocator.name.as_str()) {
                    *found = Err(why.clone());
                }
                let Ok(all) = found else { continue };
                if !ask.quick && !case.name.ends_with(IN_FRAGMENTS) {
                    back(BACKED);
                }
                match tool.run(allocator, &case.arguments) {
                    None => return Ok(rows),
                    Some(Ok(one)) => all.push(one),
                    Some(Err(why)) => {
                        if why.starts_with(NOT_SERVED) {
                            given_up.insert(&allocator.name, why.clone());
                        }
                        *found = Err(why);
                    }
                }
            }
        }
        rows.extend(allocators.iter().zip(found).map(|(allocator, found)| row(&allocator.name, &case.name, &found)));
    }
    Ok(rows)
}

fn row(allocator: &str, program: &str, found: &Result<Vec<Row>, String>) -> Row {
    let head = json!({ "allocator": allocator, "program": program });
    let rounds = match found {
        Ok(rounds) => rounds,
        Err(why) => return with(head, &json!({}), why),
    };
    let killed = rounds.iter().filter(|round| round["alive"] == false).count();
    let mut fields = json!({ "rounds": rounds.len(), "killed": killed });
    let names = rounds.iter().filter_map(Row::as_object).flat_map(|round| round.keys());
    for name in names.filter(|name| rounds.iter().all(|round| round[*name].is_number())) {
        fields[name] = json!(Spread::of(rounds.iter().map(|round| round.num(name))).map(|spread| spread.median));
    }
    fields["samples"] = rounds.last().map_or(json!([]), |round| round["samples"].clone());
    with(head, &fields, "ok")
}

fn figures(program: &str) -> &'static [&'static str] {
    FIGURES.iter().find(|(start, _)| program.starts_with(start)).map_or(&[], |(_, figures)| figures)
}

fn is_coverage(figure: &str) -> bool {
    figure.starts_with("coverage")
}

fn is_time(figure: &str) -> bool {
    figure.ends_with("_ns") || ["time_s", "cpu_s", "rise_s"].contains(&figure)
}

fn figure(rows: &[Row], program: &str, allocator: &str, figure: &str) -> Option<f64> {
    let row = rows.iter().find(|row| row.has(&[("program", program), ("allocator", allocator), ("status", "ok")]))?;
    row[figure].as_f64()
}

fn cells(rows: &[Row]) -> impl Iterator<Item = (&str, &'static str)> {
    let of = |program| figures(program).iter().map(move |name| (program, *name));
    let has =
        |(program, name): &(&str, &str)| rows.iter().any(|r| r.word("program") == *program && r[*name].is_number());
    distinct(rows, |row| row.word("program")).into_iter().flat_map(of).filter(has)
}

/// By glibc, and by the best other.
fn against(rows: &[Row], program: &str, name: &str) -> [Option<f64>; 2] {
    let of = |allocator| figure(rows, program, allocator, name).filter(|value| *value > 0.0);
    let others = distinct(rows, |row| row.word("allocator")).into_iter().filter(|other| !other.starts_with(OURS));
    let best = others.filter_map(of).min_by(f64::total_cmp);
    let ours = of(OURS).filter(|_| !is_coverage(name));
    [of(BASE), best].map(|other| Some(ours? / other?))
}

fn ratios(rows: &[Row]) -> Map {
    let (mut ratios, mut means) = (Map::new(), BTreeMap::<String, Vec<f64>>::new());
    for (program, name) in cells(rows) {
        for (ratio, whom) in against(rows, program, name).into_iter().zip([BASE, "best_peer"]) {
            let Some(ratio) = ratio else { continue };
            ratios.insert(format!("{program}_{name}_vs_{whom}"), ratio);
            let kind = if is_time(name) { "time" } else { "memory" };
            means.entry(format!("all_{kind}_vs_{whom}")).or_default().push(ratio);
        }
    }
    ratios.extend(means.into_iter().map(|(name, all)| (name, geomean(&all))));
    ratios
}

fn show(rows: &[Row]) -> String {
    let names = distinct(rows, |row| row.word("allocator"));
    let mut table = vec![["program", "figure"].map(str::to_owned).to_vec()];
    table[0].extend(names.iter().map(|name| (*name).to_owned()));
    table[0].extend([format!("÷ {BASE}"), "÷ best".to_owned()]);
    for (program, name) in cells(rows) {
        let cell = |allocator: &&str| match figure(rows, program, allocator, name) {
            Some(value) => write(name, value),
            None => missing(rows, program, allocator),
        };
        let ratios = against(rows, program, name).map(|ratio| ratio.map_or("-".to_owned(), |r| format!("{r:.2}")));
        let line = [program.to_owned(), name.to_owned()].into_iter().chain(names.iter().map(cell)).chain(ratios);
        table.push(line.collect());
    }
    let failed = rows.iter().filter(|row| !row.is_ok());
    let failed =
        failed.map(|row| format!("{}, {}: {}\n", row.word("allocator"), row.word("program"), row.word("status")));
    format::table(&table, &[0, 1]) + failed.collect::<String>().as_str()
}

fn missing(rows: &[Row], program: &str, allocator: &str) -> String {
    let row = rows.iter().find(|row| row.has(&[("program", program), ("allocator", allocator)]));
    let killed = row.is_some_and(|row| row.int("killed") > 0);
    if killed { "killed".to_owned() } else { "-".to_owned() }
}

fn write(name: &str, value: f64) -> String {
    match name {
        _ if name.ends_with("_bytes") => format::bytes(value as u64),
        _ if name.ends_with("_ns") => Unit::Seconds.write(value / 1e9),
        _ if is_time(name) => format::seconds(value),
        _ if is_coverage(name) => Unit::Part.write(value),
        _ => Unit::Ratio.write(value),
    }
}

fn draw(sheet: &mut Sheet) {
    let rows = sheet.rows().to_vec();
    let names: Vec<String> = distinct(&rows, |row| row.word("allocator").to_owned());
    let series: Vec<String> = names.into_iter().filter(|name| name != BASE).collect();
    for (picture, what, time) in [("memory", "Memory", false), ("time", "Time", true)] {
        let groups =
            cells(&rows).filter(|(_, name)| is_time(name) == time && !is_coverage(name)).map(|(program, name)| {
                let of = |allocator: &str| figure(&rows, program, allocator, name).filter(|value| *value > 0.0);
                let bar = |allocator: &String| Some(Estimate::exact(of(allocator)? / of(BASE)?));
                Bars { name: format!("{program} {name}"), bars: series.iter().map(bar).collect() }
            });
        let groups: Vec<Bars> = groups.collect();
        if !groups.is_empty() {
            let about = format!("medians, {BASE} = 1; less is better; a killed program has no figure");
            let title = format!("{what} of programs that we did not write");
            sheet.bars(
                Title(picture, &title, &about),
                Axis::log(format!("ratio to {BASE}"), Unit::Ratio),
                &series,
                groups,
                Some(1.0),
            );
        }
    }
    for program in
        distinct(&rows, |row| row.word("program")).into_iter().filter(|of| WAIT.iter().any(|w| of.starts_with(w)))
    {
        let huge = ["fork", "dense"].iter().any(|of| program.starts_with(of));
        let points: Vec<Row> = rows
            .iter()
            .filter(|row| row.word("program") == program)
            .flat_map(|row| row["samples"].as_array().into_iter().flatten().map(move |at| (row, at)))
            .map(|(row, at)| json!({ "name": row.word("allocator"), "x": at[0], "y": at[1 + usize::from(huge)] }))
            .collect();
        let what = if huge { "memory on hugepages" } else { "resident set" };
        let about = PROGRAMS.iter().find(|of| of.name == program).map_or("", |of| of.about);
        let all = lines(&points, |row| row.word("name").to_owned(), |row| (row.num("x"), row.num("y")));
        let axes = (Axis::linear("time", Unit::Seconds), Axis::linear(what, Unit::Bytes));
        sheet.lines(Title(program, &format!("{program}: {what} over time"), about), axes, all, None);
    }
}

#[cfg(test)]
mod tests;
