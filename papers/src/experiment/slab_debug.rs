//! `slab-debug`: what the debugging kit costs real programs.
//!
//! **What.** The real programs found here on Craton, with the kit off, in its sampled form at the default rate, with the checks that need no
//! pages of their own, and with all checks but the search for leaks, which comes after the program's work.
//!
//! **From.** Bonwick94 §6 has no figures; GWP-ASan (arXiv 2311.09394) bounds its sampled form by 0.5 % of the time.
//!
//! **State.** Full: the loads' full size, three rounds after a warm-up. Quick: their small size, one round, two programs.

use super::series::{self, Case, Result};
use super::{Ask, Experiment, Findings};
use crate::real::{self, REAL, Size};
use craton_lab::document::Document;
use craton_lab::format::{seconds, table};
use craton_lab::measure::{Allocator, Progress};
use craton_lab::ratios::{OURS, Ratios};
use craton_lab::scratch::Scratch;
use craton_lab::summary::{Figure, ratio, summarize};

/// The experiment, in the list.
pub const EXPERIMENT: Experiment = Experiment {
    name: "slab-debug",
    about: "real programs with the debugging kit off, sampled, and on: how much slower",
    answers: "Bonwick94 §6; what do the checks cost?",
    run,
};

/// The forms of the kit: the name's end, and the option.
const FORMS: [(&str, &str); 3] = [
    ("sampled", "guard_sample=auto"),
    ("checks", "debug=audit,redzone,poison,verify"),
    ("all", "debug=audit,redzone,poison,verify,guard,unmap"),
];
const ROUNDS: usize = 3;
/// Programs of the quick form.
const QUICK: [&str; 2] = ["python3", "gcc"];

fn run(ask: &Ask<'_>) -> std::result::Result<Findings, String> {
    let allocators = allocators(ask)?;
    let scratch = Scratch::new("the inputs of real programs")?;
    let (cases, missing) = cases(ask, &scratch)?;
    let (rounds, warmup) = if ask.quick { (ask.runs.unwrap_or(1), 0) } else { (ask.runs.unwrap_or(ROUNDS), 1) };
    let results = series::measure(ask, &allocators, cases, rounds, warmup);
    if results.is_empty() {
        return Err(format!("nothing was measured\n{missing}"));
    }
    let ratios = Ratios::of(&Result::runs(&results), OURS);
    let document = Document::new(EXPERIMENT.name, ask.command, &allocators, Result::rows(&results), &ratios);
    Ok(Findings {
        text: format!("{}{missing}", show(&results)),
        pictures: Vec::new(),
        failed: Result::failed(&results),
        document: super::text(&document)?,
    })
}

/// Craton, as it is and with each form of the kit.
fn allocators(ask: &Ask<'_>) -> std::result::Result<Vec<Allocator>, String> {
    let craton = ask
        .allocators
        .iter()
        .find(|a| a.name == OURS)
        .ok_or("this experiment is about Craton alone, which was left out")?;
    let form = |(name, option): (&str, &str)| {
        let env = vec![("CRATON_OPTIONS".into(), option.into())];
        Allocator { name: format!("{OURS}+{name}"), env, ..craton.clone() }
    };
    Ok(std::iter::once(craton.clone()).chain(FORMS.map(form)).collect())
}

fn cases(ask: &Ask<'_>, scratch: &Scratch) -> std::result::Result<(Vec<Case>, String), String> {
    let (mut cases, mut missing) = (Vec::new(), String::new());
    for real in REAL.iter().filter(|real| !ask.quick || !ask.only.is_empty() || QUICK.contains(&real.name)) {
        match real.available() {
            Ok(()) => cases.push(Case { name: real.name.to_owned(), command: Vec::new(), prove: true }),
            Err(why) => missing += &format!("not measured: {why}\n"),
        }
    }
    super::only(ask, &mut cases)?;
    let size = if ask.quick { Size::Quick } else { Size::Full };
    for case in &mut cases {
        let real = real::find(&case.name).ok_or("a case is a real program")?;
        (ask.progress)(&format!("inputs of {}", case.name), Progress { allocator: "", round: None, done: 0, total: 0 });
        match real::prepare(&scratch.path().join(real.name), real, size) {
            Ok(command) => case.command = command,
            Err(why) => missing += &format!("not measured: {why}\n"),
        }
    }
    cases.retain(|case| !case.command.is_empty());
    Ok((cases, missing))
}

fn show(results: &[Result]) -> String {
    let head = ["", "off", "sampled ×", "checks ×", "all ×", "memory, all ×"].map(str::to_owned);
    let mut rows = vec![head.to_vec()];
    for result in results {
        let off = summarize(&result.runs, OURS).and_then(|s| s.spread(Figure::Wall));
        let mut row = vec![result.name.clone(), off.map_or("-".to_owned(), |spread| seconds(spread.median))];
        let against = |form: &str, figure| {
            let name = format!("{OURS}+{form}");
            let ratio = ratio(&result.runs, &name, OURS, figure);
            ratio.map_or_else(|| series::status(&result.runs, &name), |ratio| format!("{:.2}", ratio.of_medians))
        };
        row.extend(FORMS.map(|(form, _)| against(form, Figure::Wall)));
        row.push(against("all", Figure::PeakRss));
        rows.push(row);
    }
    format!("wall time, medians; × is the ratio to the kit off\n\n{}", table(&rows, &[0]))
}
