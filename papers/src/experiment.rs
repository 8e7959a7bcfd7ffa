//! The experiments: what `craton lab list` shows and `craton lab run` does.
//!
//! **What.** An [`Experiment`] answers one question, most often a figure of a paper, beside today's allocators. It has a
//! quick form, under twenty seconds, that shows that it works, and a full form whose figures count. It yields
//! [`Findings`]: a document, a table, and pictures.
//!
//! **Failure.** What one allocator fails at is a row with its status. Only what leaves nothing to show is an error. Stopped
//! early, an experiment yields what it has.
//!
//! **Not here.** Figures of layers that do not exist yet: `docs/experiments.md` lists all of them with their state.

mod courses;
mod llfree;
mod llfree_crash;
mod llfree_fig10;
mod llfree_fig5;
mod llfree_fig7;
mod llfree_fig9;
mod llfree_tab1;
mod micro;
mod nvalloc_fig1b;
mod pages_pair;
mod profiles;
mod series;
mod simulation;
mod size_classes;
mod slab;
mod slab_colour;
mod slab_debug;
mod slab_frag;
mod slab_objects;
mod slab_reap;
mod slab_speed;
mod speed;
mod temeraire_empirical;
mod temeraire_fig10;
mod temeraire_fig11;
mod temeraire_fig12;
mod temeraire_fig13;
mod temeraire_fig9;
mod temeraire_overhead;
mod temeraire_redis;
mod world;

use craton_lab::document::Document;
use craton_lab::measure::{Allocator, Progress};
use craton_lab::picture::Heading;
use serde::Serialize;
use series::Case;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// An experiment.
pub struct Experiment {
    /// What it is called by.
    pub name: &'static str,
    /// What it shows, in one line.
    pub about: &'static str,
    /// The paper's figure or table that it answers, or the question.
    pub answers: &'static str,
    /// Does it.
    pub run: fn(&Ask<'_>) -> Result<Findings, String>,
}

/// How an experiment shall be done.
pub struct Ask<'a> {
    /// Whether in the quick form.
    pub quick: bool,
    /// The allocators, glibc's first, then Craton.
    pub allocators: &'a [Allocator],
    /// Whether some of them were asked for: a quick form then leaves none out.
    pub peers_asked: bool,
    /// Rounds that count; each experiment has its own number, if none is asked for.
    pub runs: Option<usize>,
    /// The workloads to do, by name; all, if empty.
    pub only: &'a [String],
    /// Where the lab's program of that name is, which allocators are preloaded into.
    pub tool: &'a dyn Fn(&str) -> Result<PathBuf, String>,
    /// What was typed, for the document.
    pub command: &'a [OsString],
    /// Set to end early.
    pub stop: &'a AtomicBool,
    /// Called before each run with the name of what runs.
    pub progress: &'a dyn Fn(&str, Progress<'_>),
}

/// What an experiment found.
pub struct Findings {
    /// The document of `--json`, as text.
    pub document: String,
    /// The same for people.
    pub text: String,
    /// Pictures: the name of each, without an ending, and its SVG.
    pub pictures: Vec<(String, String)>,
    /// Rows that are not `ok`.
    pub failed: usize,
}

/// Every experiment.
pub const EXPERIMENTS: &[Experiment] = &[
    speed::EXPERIMENT,
    micro::EXPERIMENT,
    temeraire_redis::EXPERIMENT,
    temeraire_empirical::EXPERIMENT,
    temeraire_fig9::EXPERIMENT,
    temeraire_fig10::EXPERIMENT,
    temeraire_fig11::EXPERIMENT,
    temeraire_fig12::EXPERIMENT,
    temeraire_fig13::EXPERIMENT,
    temeraire_overhead::EXPERIMENT,
    size_classes::EXPERIMENT,
    pages_pair::EXPERIMENT,
    llfree_fig5::EXPERIMENT,
    llfree_fig7::EXPERIMENT,
    llfree_fig9::EXPERIMENT,
    llfree_tab1::EXPERIMENT,
    llfree_fig10::EXPERIMENT,
    llfree_crash::EXPERIMENT,
    slab_objects::EXPERIMENT,
    slab_speed::EXPERIMENT,
    slab_frag::EXPERIMENT,
    slab_colour::EXPERIMENT,
    slab_reap::EXPERIMENT,
    slab_debug::EXPERIMENT,
    nvalloc_fig1b::EXPERIMENT,
];

/// The experiment of that name.
pub fn find(name: &str) -> Option<&'static Experiment> {
    EXPERIMENTS.iter().find(|experiment| experiment.name == name)
}

/// The program that runs workloads.
fn craton_work(ask: &Ask<'_>) -> Result<OsString, String> {
    (ask.tool)("craton-work").map(OsString::from)
}

/// A workload as a case, of so many percent; who serves it is proven for all of them together.
fn workload(program: &OsStr, name: &str, percent: u64) -> Case {
    let command = vec![program.to_owned(), name.into(), "--percent".into(), percent.to_string().into()];
    Case { name: name.to_owned(), command, prove: false }
}

fn text<R: Serialize>(document: &Document<R>) -> Result<String, String> {
    document.text().map_err(|e| format!("cannot write the figures as JSON: {e}"))
}

/// What an experiment that has no use for an option says when it is given.
fn no_use(option: &str, experiment: &str) -> String {
    format!("{experiment} has no use for {option}; leave it out")
}

/// The heading of a picture, with where its figures come from.
fn heading<R>(title: &str, subtitle: &str, document: &Document<R>) -> Heading {
    let machine = &document.machine;
    Heading {
        title: title.to_owned(),
        subtitle: subtitle.to_owned(),
        source: format!(
            "{}, {} processors, Linux {}, THP {}; commit {}; {}",
            machine.cpu,
            machine.cpus,
            machine.kernel,
            machine.thp,
            document.commit.get(..12).unwrap_or(&document.commit),
            document.command.join(" ")
        ),
    }
}

/// Leaves the cases that are asked for.
///
/// # Errors
/// A name that no case has.
fn only(ask: &Ask<'_>, cases: &mut Vec<Case>) -> Result<(), String> {
    for (place, name) in ask.only.iter().enumerate() {
        if ask.only[..place].contains(name) {
            return Err(format!("--only names {name} twice; take one out"));
        }
        if !cases.iter().any(|case| case.name == *name) {
            let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
            return Err(format!("--only {name}: no such workload here; there are: {}", names.join(", ")));
        }
    }
    cases.retain(|case| ask.only.is_empty() || ask.only.contains(&case.name));
    Ok(())
}

#[cfg(test)]
mod tests;
