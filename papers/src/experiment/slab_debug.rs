//! `slab-debug`: the cost of the debugging kit in real programs (docs/experiments.md). Two forms
//! without samples show what the machine can resolve. The verdict compares within rounds, which
//! slow hours do not change.
//!
//! **From.** GWP-ASan (arXiv 2311.09394) allows 0.5 % of time.

use super::series::{self, Result};
use super::{Ask, Findings};
use crate::backed::back;
use crate::real::Size;
use craton_lab::format::{seconds, table};
use craton_lab::measure::{Allocator, Progress, Run};
use craton_lab::ratios::OURS;
use craton_lab::scratch::Scratch;
use craton_lab::summary::{Figure, Ratio, geomean, ratio, summarize, within_rounds};

/// Suffix and option.
const OFF: (&str, &str) = ("off", "guard_sample=0");
const AGAIN: (&str, &str) = ("off again", "guard_sample=0");
const FORMS: [(&str, &str); 2] = [
    ("checks", "guard_sample=0,debug=audit,redzone,poison,verify"),
    ("all", "guard_sample=0,debug=audit,redzone,poison,verify,guard,unmap"),
];
const ROUNDS: usize = 3;
const SHORT_ROUNDS: usize = 60;
/// More than most short programs use; see [`crate::backed`].
const BACKED: usize = 128 << 20;
const BOUND: f64 = 1.005;
const QUICK: [&str; 2] = ["python3", "gcc"];

pub fn run(ask: &Ask<'_>) -> std::result::Result<Findings, String> {
    let craton = ask
        .allocators
        .iter()
        .find(|a| a.name == OURS)
        .ok_or("this experiment is about Craton alone, which was left out")?;
    let form = |(name, option): (&str, &str)| {
        let env = vec![("CRATON_OPTIONS".into(), option.into())];
        Allocator { name: named(name), env, ..craton.clone() }
    };
    let (off, forms) = (form(OFF), FORMS.map(form));
    let with_samples = [off.clone(), craton.clone(), form(AGAIN)];
    let with_checks: Vec<Allocator> = std::iter::once(off).chain(forms).collect();
    let backed = |what: &str, now: Progress<'_>| {
        (ask.progress)(what, now);
        if !ask.quick {
            back(BACKED);
        }
    };
    let short = results(&Ask { progress: &backed, ..*ask }, &with_samples, Size::Quick, ask.rounds(1, SHORT_ROUNDS))?;
    let long = results(ask, &with_checks, ask.form(Size::Quick, Size::Full), ask.rounds(1, ROUNDS).min(ROUNDS))?;
    let text = format!("{}\n{}{}", show_samples(&short.0), show(&long.0), long.1);
    let missing = long.1;
    let renamed = short.0.into_iter().map(|result| Result { name: format!("{}, short", result.name), ..result });
    let all: Vec<Result> = renamed.chain(long.0).collect();
    let allocators: Vec<Allocator> = [craton.clone(), form(AGAIN)].into_iter().chain(with_checks).collect();
    let sheet = Result::sheet(ask, &allocators, &all)
        .map_err(|why| format!("{why}; {}", missing.trim().replace('\n', "; ")))?;
    sheet.findings(text)
}

fn named(form: &str) -> String {
    format!("{OURS}+{form}")
}

fn results(
    ask: &Ask<'_>,
    allocators: &[Allocator],
    size: Size,
    rounds: usize,
) -> std::result::Result<(Vec<Result>, String), String> {
    let scratch = Scratch::new("the inputs of real programs")?;
    let all = !ask.quick || !ask.only.is_empty();
    let (mut cases, mut missing) = series::real_cases(|real| all || QUICK.contains(&real.name));
    ask.choose(&mut cases)?;
    missing += &series::prepare(ask, &mut cases, &scratch, size);
    Ok((series::measure(ask, allocators, cases, rounds, ask.form(0, 1)), missing))
}

fn show_samples(results: &[Result]) -> String {
    let (off, again) = (named(OFF.0), named(AGAIN.0));
    let mut rows = vec![
        ["", "rounds", "off", "by default ×", "with 95 %", "off again ×", "with 95 %"].map(str::to_owned).to_vec(),
    ];
    let columns = |ratio: Option<Ratio>| {
        let of_medians = ratio.map_or("-".to_owned(), |ratio| format!("{:.4}", ratio.of_medians));
        let interval = ratio.and_then(|ratio| ratio.interval);
        [of_medians, interval.map_or("-".to_owned(), |i| format!("{:.4} to {:.4}", i.low, i.high))]
    };
    for result in results {
        let summary = summarize(&result.runs, &off);
        let time = summary.as_ref().and_then(|s| s.spread(Figure::Cpu));
        let mut row = vec![result.name.clone(), summary.map_or("0".to_owned(), |s| s.ok.to_string())];
        row.push(time.map_or("-".to_owned(), |spread| seconds(spread.median)));
        for form in [OURS, &again] {
            row.extend(columns(ratio(&result.runs, form, &off, Figure::Cpu)));
        }
        rows.push(row);
    }
    let runs: Vec<&[Run]> = Result::runs(results);
    let mean = geomean(&runs, OURS, &off, Figure::Cpu);
    let control = geomean(&runs, &again, &off, Figure::Cpu);
    let mut all = vec!["all".to_owned(), String::new(), String::new()];
    all.extend(columns(mean).into_iter().chain(columns(control)));
    rows.push(all);
    let within = within_rounds(&runs, OURS, [&off, &again], Figure::Cpu);
    let [ratio, interval] = columns(within);
    format!(
        "processor time with samples, as by default, and without (guard_sample=0), in turns\n\n{}\n\
         within rounds, by both without: {ratio} ×, {interval} with 95 %\n{}\n",
        table(&rows, &[0]),
        verdict(within)
    )
}

fn verdict(mean: Option<Ratio>) -> &'static str {
    match mean.and_then(|mean| mean.interval) {
        Some(interval) if interval.high <= BOUND => "samples cost at most 0.5 percent: the whole interval lies below",
        Some(interval) if interval.low > BOUND => "samples cost more than 0.5 percent: the whole interval lies above",
        Some(_) => {
            "these rounds do not show whether samples cost more than 0.5 percent: the bound lies in the interval"
        }
        None => "too few rounds to show the cost of samples",
    }
}

fn show(results: &[Result]) -> String {
    let head = ["", "off", "checks ×", "all ×", "memory, all ×"].map(str::to_owned);
    let mut rows = vec![head.to_vec()];
    let off = named(OFF.0);
    for result in results {
        let time = summarize(&result.runs, &off).and_then(|s| s.spread(Figure::Wall));
        let mut row = vec![result.name.clone(), time.map_or("-".to_owned(), |spread| seconds(spread.median))];
        let against = |form: &str, figure| {
            let name = named(form);
            let ratio = ratio(&result.runs, &name, &off, figure);
            ratio.map_or_else(|| series::status(&result.runs, &name), |ratio| format!("{:.2}", ratio.of_medians))
        };
        row.extend(FORMS.map(|(form, _)| against(form, Figure::Wall)));
        row.push(against("all", Figure::PeakRss));
        rows.push(row);
    }
    format!("wall time, medians; × is the ratio to the kit off\n\n{}", table(&rows, &[0]))
}

#[cfg(test)]
mod tests;
