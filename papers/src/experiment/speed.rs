//! `speed`: every workload on every allocator, and what it comes to in time and memory.
//!
//! **What.** The workloads of [`crate::work`] and the real programs found on this machine, interleaved over the
//! allocators. The ratios have fixed names (see [`craton_lab::ratios`]). The table shows wins and losses alike, and the
//! losses to the best peer with what may explain them.
//!
//! **From.** The suites by which allocators are compared today: Hoard's, mimalloc-bench, and the papers' own.
//!
//! **State.** Quick: 5 % of the work, one round, real programs left out. Full: three rounds after a warm-up.

mod losses;
mod pictures;
mod table;

use super::series::{self, Case, Result};
use super::{Ask, Experiment, Findings};
use crate::real::{self, REAL, Size};
use crate::work::{self, WORKLOADS};
use craton_lab::document::Document;
use craton_lab::measure::Progress;
use craton_lab::ratios::{OURS, Ratios};
use craton_lab::scratch::Scratch;
use std::ffi::OsStr;

/// The experiment, in the list.
pub const EXPERIMENT: Experiment = Experiment {
    name: "speed",
    about: "all workloads and real programs on all allocators: time and memory, with geometric means",
    answers: "is it better, than what, and on which load?",
    run,
};

/// Rounds of the full form.
const ROUNDS: usize = 3;

fn run(ask: &Ask<'_>) -> std::result::Result<Findings, String> {
    let program = super::craton_work(ask)?;
    let (allocators, refused) = series::prove(ask, vec![program.clone(), "list".into()]);
    let scratch = Scratch::new("the inputs of real programs")?;
    let (cases, missing) = cases(ask, &program, &scratch)?;
    let (rounds, warmup) = if ask.quick { (ask.runs.unwrap_or(1), 0) } else { (ask.runs.unwrap_or(ROUNDS), 1) };
    let mut results = series::measure(ask, &allocators, cases, rounds, warmup);
    if !refused.is_empty() {
        results.push(Result { name: "proof".to_owned(), runs: refused });
    }
    if results.is_empty() {
        return Err("nothing was measured".to_owned());
    }
    let ratios = Ratios::of(&Result::runs(&results), OURS);
    let document = Document::new(EXPERIMENT.name, ask.command, ask.allocators, Result::rows(&results), &ratios);
    let pictures = pictures::draw(&results, &document);
    Ok(Findings {
        text: format!("{}{}{missing}", table::show(&results, &ratios), losses::show(&results)),
        pictures,
        failed: Result::failed(&results),
        document: super::text(&document)?,
    })
}

/// The workloads and real programs that are asked for, as commands, and a line for each program that is not here.
fn cases(ask: &Ask<'_>, program: &OsStr, scratch: &Scratch) -> std::result::Result<(Vec<Case>, String), String> {
    let percent = if ask.quick { work::QUICK } else { work::FULL };
    let mut cases: Vec<Case> =
        WORKLOADS.iter().map(|workload| super::workload(program, workload.name, percent)).collect();
    let mut missing = String::new();
    for real in REAL.iter().filter(|_| !ask.quick) {
        match real.available() {
            Ok(()) => cases.push(Case { name: real.name.to_owned(), command: Vec::new(), prove: true }),
            Err(why) => missing += &format!("not measured: {why}\n"),
        }
    }
    super::only(ask, &mut cases)?;
    // Made only now: inputs take their time.
    for case in cases.iter_mut().filter(|case| case.command.is_empty()) {
        let real = real::find(&case.name).ok_or("a case without a command is a real program")?;
        (ask.progress)(&format!("inputs of {}", case.name), Progress { allocator: "", round: None, done: 0, total: 0 });
        match real::prepare(&scratch.path().join(real.name), real, Size::Full) {
            Ok(command) => case.command = command,
            Err(why) => missing += &format!("not measured: {why}\n"),
        }
    }
    cases.retain(|case| !case.command.is_empty());
    Ok((cases, missing))
}
