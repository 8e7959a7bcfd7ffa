//! `speed`: every workload on every allocator, and what it comes to in time and memory.
//!
//! **What.** The workloads of [`crate::work`] and the real programs found on this machine, interleaved over the
//! allocators. The ratios have fixed names (see [`crate::ratios`]). The table shows wins and losses alike, and the
//! losses to the best peer with what may explain them.
//!
//! **From.** The suites by which allocators are compared today: Hoard's, mimalloc-bench, and the papers' own.
//!
//! **State.** Quick: 5 % of the work, one round, real programs left out. Full: three rounds after a warm-up.

mod losses;
mod table;

use super::series::{self, Case, Result};
use super::{Ask, Experiment, Findings};
use crate::document::Document;
use crate::ratios::{OURS, Ratios};
use crate::work::{self, WORKLOADS};

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
    let (allocators, refused) = series::prove(ask, vec![ask.tools.work.clone().into(), "list".into()]);
    let cases = cases(ask)?;
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
    Ok(Findings {
        text: format!("{}{}", table::show(&results, &ratios), losses::show(&results)),
        pictures: Vec::new(),
        failed: Result::failed(&results),
        document: serde_json::to_value(&document).map_err(|e| format!("cannot write the figures as JSON: {e}"))?,
    })
}

/// The workloads that are asked for, as commands.
fn cases(ask: &Ask<'_>) -> std::result::Result<Vec<Case>, String> {
    let percent = if ask.quick { work::QUICK } else { work::FULL };
    let mut cases: Vec<Case> = WORKLOADS.iter().map(|workload| super::workload(ask, workload.name, percent)).collect();
    super::only(ask, &mut cases)?;
    Ok(cases)
}
