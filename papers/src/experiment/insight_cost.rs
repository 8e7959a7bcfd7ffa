//! `insight-cost`: what statistics, the heap profile and a trace cost the lab's workloads.
//!
//! **What.** Processor time of each form against the mean of two without any, within rounds, which
//! slow hours do not change. The second of those against the first shows what the machine can
//! resolve. Counters are always on: `statistics` keeps them in a file for readers outside.

use super::ask::workload;
use super::series::{self, Case, Result};
use super::{Ask, Findings};
use crate::work::WORKLOADS;
use craton_lab::format::{seconds, table};
use craton_lab::measure::{Allocator, Run};
use craton_lab::ratios::OURS;
use craton_lab::scratch::Scratch;
use craton_lab::summary::{Figure, Ratio, geomean, ratio, summarize, within_rounds};
use std::path::Path;

pub(super) const OFF: &str = "off";
pub(super) const AGAIN: &str = "off again";
/// Name, and the greatest ratio that is allowed.
pub(super) const FORMS: [(&str, f64); 3] = [("statistics", 1.002), ("profile", 1.005), ("trace", 1.01)];
/// Of the full workloads: a round takes 25 s on two processors of 2026.
const PERCENT: u64 = 30;
const QUICK_PERCENT: u64 = 5;
const QUICK: [&str; 3] = ["cfrac", "larson-small", "server"];
const ROUNDS: usize = 16;

pub fn run(ask: &Ask<'_>) -> std::result::Result<Findings, String> {
    ask.refuse(&["--peers"], ", which is about Craton alone,")?;
    let craton = ask.allocators.iter().find(|a| a.name == OURS).ok_or("Craton was left out")?;
    let scratch = Scratch::new("statistics and traces")?;
    let allocators = forms(craton, scratch.path());
    let program = ask.craton_work()?;
    let percent = ask.form(QUICK_PERCENT, PERCENT);
    let wanted = |name: &&str| !ask.quick || !ask.only.is_empty() || QUICK.contains(name);
    let names = WORKLOADS.iter().map(|of| of.name).filter(wanted);
    let prove = |case: Case| Case { prove: true, ..case };
    let mut cases: Vec<Case> = names.map(|name| prove(workload(&program, name, percent))).collect();
    ask.choose(&mut cases)?;
    let results = series::measure(ask, &allocators, cases, ask.rounds(1, ROUNDS), 1);
    let text = show(&results);
    Result::sheet(ask, &allocators, &results)?.findings(text)
}

pub(super) fn named(form: &str) -> String {
    format!("{OURS}+{form}")
}

pub(super) fn forms(craton: &Allocator, folder: &Path) -> Vec<Allocator> {
    let folder = folder.display();
    let options = [
        (OFF, "profile=off".to_owned()),
        ("statistics", format!("profile=off,stats_dir={folder}")),
        ("profile", "profile=auto".to_owned()),
        ("trace", format!("profile=off,trace={folder}/trace")),
        (AGAIN, "profile=off".to_owned()),
    ];
    let form = |(name, option): (&str, String)| {
        let env = vec![("CRATON_OPTIONS".into(), option.into())];
        Allocator { name: named(name), env, ..craton.clone() }
    };
    options.map(form).into()
}

fn show(results: &[Result]) -> String {
    let mut rows =
        vec![["", "rounds", "off", "statistics ×", "profile ×", "trace ×", "off again ×"].map(str::to_owned).to_vec()];
    let off = named(OFF);
    for result in results {
        let summary = summarize(&result.runs, &off);
        let time = summary.as_ref().and_then(|s| s.spread(Figure::Cpu));
        let mut row = vec![result.name.clone(), summary.map_or("0".to_owned(), |s| s.ok.to_string())];
        row.push(time.map_or("-".to_owned(), |spread| seconds(spread.median)));
        for form in FORMS.map(|(name, _)| name).into_iter().chain([AGAIN]) {
            let name = named(form);
            let ratio = ratio(&result.runs, &name, &off, Figure::Cpu);
            row.push(ratio.map_or_else(|| series::status(&result.runs, &name), |r| format!("{:.3}", r.of_medians)));
        }
        rows.push(row);
    }
    let runs: Vec<&[Run]> = Result::runs(results);
    let mut text = format!("processor time, medians; × is the ratio to `off`\n\n{}\n", table(&rows, &[0]));
    text += "within rounds, by the mean of both without, over all workloads\n";
    for (form, bound) in FORMS {
        let mean = within_rounds(&runs, &named(form), [&off, &named(AGAIN)], Figure::Cpu);
        text += &verdict(form, mean, bound);
    }
    let control = geomean(&runs, &named(AGAIN), &off, Figure::Cpu).and_then(|control| control.interval);
    let control = control.map_or("-".to_owned(), |i| format!("{:.4} to {:.4}", i.low, i.high));
    text += &format!("{AGAIN}, by the first alone: {control} with 95 %\n");
    text
}

fn verdict(form: &str, mean: Option<Ratio>, bound: f64) -> String {
    let percent = format!("{:.1} %", 100.0 * (bound - 1.0));
    let Some(interval) = mean.and_then(|mean| mean.interval) else {
        return format!("{form}: too few rounds to show its cost\n");
    };
    let what = match interval {
        interval if interval.high <= bound => "at most",
        interval if interval.low > bound => "more than",
        _ => "these rounds do not show whether it is at most",
    };
    let ratio = mean.map_or(0.0, |mean| mean.of_medians);
    format!("{form}: {ratio:.4} ×, {:.4} to {:.4} with 95 %; {what} {percent}\n", interval.low, interval.high)
}

#[cfg(test)]
mod tests;
