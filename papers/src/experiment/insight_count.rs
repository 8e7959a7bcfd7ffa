//! `insight-count`: what statistics, the heap profile and a trace cost, in instructions.
//!
//! **What.** Callgrind counts twice what each workload with one thread executes in each form. Other
//! work of the machine does not change a count, so that it shows what processor time does not. It
//! knows no cache and no system call's work.

use super::insight_cost::{AGAIN, FORMS, OFF, forms, named};
use super::sheet::{Row, Sheet, json};
use super::{Ask, Findings};
use crate::work::WORKLOADS;
use craton_lab::format::{count, table};
use craton_lab::measure::once;
use craton_lab::micro::callgrind::{Counting, instructions, no_valgrind};
use craton_lab::micro::process::Ended;
use craton_lab::ratios::OURS;
use craton_lab::scratch::Scratch;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::time::Duration;

const VALGRIND: &str = "valgrind";
/// Of the full workloads.
const PERCENT: u64 = 10;
const QUICK_PERCENT: u64 = 1;
const QUICK: [&str; 2] = ["cfrac", "sh6"];
/// The most by which two counts of a form may differ, as a part, for a workload that repeats.
/// Others release memory by time, or depend on addresses.
const APART: f64 = 0.001;
const TIMES: usize = 2;
const LIMIT: Duration = Duration::from_secs(300);

/// A workload's counts by form, or why one failed.
struct Counted {
    name: &'static str,
    forms: BTreeMap<String, Vec<Result<u64, String>>>,
}

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    ask.refuse(&["--peers", "--runs"], ", which counts each form of Craton twice,")?;
    let craton = ask.allocators.iter().find(|a| a.name == OURS).ok_or("Craton was left out")?;
    let program = ask.craton_work()?;
    let scratch = Scratch::new("statistics, traces and counts")?;
    let all: Vec<&str> = WORKLOADS.iter().filter(|of| of.threads == 1).map(|of| of.name).collect();
    ask.known("workload with one thread", &all)?;
    let is_wanted = |name: &&str| ask.wants(name) && (!ask.quick || !ask.only.is_empty() || QUICK.contains(name));
    let names: Vec<&'static str> = all.into_iter().filter(is_wanted).collect();
    let percent = ask.form(QUICK_PERCENT, PERCENT).to_string();
    let mut all = Vec::new();
    for (done, name) in names.iter().enumerate() {
        ask.show(name, OURS, 0, (done, names.len()));
        let command: Vec<OsString> =
            [&*program, OsStr::new(name), OsStr::new("--percent"), OsStr::new(&percent)].map(OsStr::to_owned).into();
        let mut counted = Counted { name, forms: BTreeMap::new() };
        for _ in 0..TIMES {
            let mut started = Vec::new();
            for form in forms(craton, scratch.path()).into_iter().filter(|form| form.name != named(AGAIN)) {
                let (variables, _) = once::environment(&form)?;
                let valgrind = OsStr::new(VALGRIND);
                let counting = Counting::start(valgrind, &command, &variables, scratch.path(), &form.name, LIMIT);
                started.push((form.name, counting.map_err(|e| no_valgrind(valgrind, &e))?));
            }
            for (form, counting) in started {
                let result = match counting.finish(ask.stop).map_err(|e| format!("{VALGRIND}: {e}"))? {
                    (Ended::Stopped, _) => break,
                    (Ended::TimedOut, _) => Err(format!("{VALGRIND} took longer than {} s", LIMIT.as_secs())),
                    (Ended::Done(output), file) => instructions(&output, &file),
                };
                counted.forms.entry(form).or_default().push(result);
            }
        }
        if ask.stopped() {
            break;
        }
        all.push(counted);
    }
    let mut sheet = Sheet::new(ask, all.iter().flat_map(rows).collect());
    sheet.failed = all.iter().flat_map(|of| of.forms.values().flatten()).filter(|result| result.is_err()).count();
    sheet.findings(show(&all))
}

fn rows(of: &Counted) -> Vec<Row> {
    let row = |(form, result): (&str, &Result<u64, String>)| {
        let status = result.as_ref().err().map_or("ok", String::as_str);
        json!({"workload": of.name, "form": form, "instructions": result.as_ref().ok(), "status": status})
    };
    of.results().map(row).collect()
}

impl Counted {
    fn results(&self) -> impl Iterator<Item = (&str, &Result<u64, String>)> {
        self.forms.iter().flat_map(|(form, results)| results.iter().map(move |result| (&**form, result)))
    }

    /// The least and the greatest count; `None` if one failed.
    fn counts(&self, form: &str) -> Option<(u64, u64)> {
        let all: Option<Vec<u64>> =
            self.forms.get(&named(form))?.iter().map(|result| result.as_ref().ok().copied()).collect();
        let all = all?;
        Some((*all.iter().min().filter(|least| **least > 0)?, *all.iter().max()?))
    }

    /// To the counts without, by the means.
    fn ratio(&self, form: &str) -> Option<f64> {
        let sum = |form| self.counts(form).map(|(least, most)| (least + most) as f64);
        Some(sum(form)? / sum(OFF)?)
    }

    /// The most by which two counts of a form differ, as a part.
    fn apart(&self) -> f64 {
        let forms = FORMS.iter().map(|(form, _)| *form).chain([OFF]).filter_map(|form| self.counts(form));
        forms.map(|(least, most)| most as f64 / least as f64 - 1.0).fold(0.0, f64::max)
    }

    fn repeats(&self) -> bool {
        self.apart() <= APART
    }
}

fn percent(ratio: f64) -> String {
    format!("{:+.3} %", 100.0 * (ratio - 1.0))
}

fn show(all: &[Counted]) -> String {
    let names = FORMS.map(|(name, _)| name);
    let heads = ["", OFF].into_iter().chain(names).chain(["apart"]);
    let mut cells = vec![heads.map(str::to_owned).collect::<Vec<_>>()];
    for of in all {
        let mut row = vec![of.name.to_owned(), of.counts(OFF).map_or("-".to_owned(), |(least, _)| count(least))];
        row.extend(names.iter().map(|form| of.ratio(form).map_or("-".to_owned(), percent)));
        row.push(format!("{:.3} %", 100.0 * of.apart()));
        cells.push(row);
    }
    let mut text = format!(
        "instructions, and how many more each form executes, means of {TIMES}\n\n{}\n\
         apart: the most by which the counts of one form differ\n",
        table(&cells, &[0])
    );
    for (form, bound) in FORMS {
        let of_one = |of: &Counted| Some((of.ratio(form)?, of.name));
        let ratios: Vec<(f64, &str)> = all.iter().filter(|of| of.repeats()).filter_map(of_one).collect();
        text += &verdict(form, &ratios, bound);
    }
    let others: Vec<&str> = all.iter().filter(|of| !of.repeats()).map(|of| of.name).collect();
    if !others.is_empty() {
        let most = 100.0 * APART;
        text += &format!("in no line above, since counts differ by more than {most:.1} %: {}\n", others.join(", "));
    }
    let failed = all.iter().flat_map(|of| of.results().map(move |(form, result)| (of.name, form, result)));
    for (name, form, why) in failed.filter_map(|(name, form, result)| Some((name, form, result.as_ref().err()?))) {
        text += &format!("not counted: {name} on {form}: {why}\n");
    }
    text
}

/// Whether the bound is met, by the geometric mean and by each.
fn verdict(form: &str, ratios: &[(f64, &str)], bound: f64) -> String {
    let Some((most, name)) = ratios.iter().copied().max_by(|a, b| a.0.total_cmp(&b.0)) else {
        return format!("{form}: no workload was counted\n");
    };
    let mean = (ratios.iter().map(|(ratio, _)| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
    let over = ratios.iter().filter(|(ratio, _)| *ratio > bound).count();
    let is_met = match (mean <= bound, over) {
        (true, 0) => "met by each".to_owned(),
        (true, over) => format!("met by the mean, not by {over} of {}", ratios.len()),
        (false, _) => "not met".to_owned(),
    };
    let (mean, most, bound) = (percent(mean), percent(most), 100.0 * (bound - 1.0));
    format!("{form}: {mean} by the geometric mean, the most {most} ({name}); at most {bound:.1} %: {is_met}\n")
}

#[cfg(test)]
mod tests;
