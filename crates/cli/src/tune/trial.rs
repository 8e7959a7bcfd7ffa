//! Settings that a trace cannot show, tried on the program.
//!
//! **What.** Thread caches lie in front of the page heap, whose requests a trace records. So each
//! of [`CACHES`] runs beside the replay's answer, in turns with the default. The setting with least
//! memory is the one to prove.

use super::proof::{DEFAULT, runs};
use super::search::Goal;
use crate::args;
use crate::failure::Failure;
use crate::terminal::Stream;
use craton_lab::format;
use craton_lab::measure::Run;
use craton_lab::summary::{Figure, summarize};

/// The library's values that keep less memory in caches.
const CACHES: [&str; 2] = ["caches=cpu", "thread_cache=256K"];
const ROUNDS: usize = 2;
/// The greatest ratio of memory to the default's that is worth a proof: two rounds differ by less.
const WORTH: f64 = 0.97;
/// The greatest ratio of processor time under [`Goal::Balanced`].
const MOST_CPU: f64 = 1.05;

/// Medians of a setting's runs.
#[derive(Clone, Debug)]
struct Tried {
    options: String,
    peak: f64,
    steady: Option<f64>,
    cpu: f64,
}

impl Tried {
    fn of(runs: &[Run], options: &str) -> Option<Self> {
        let summary = summarize(runs, name(options))?;
        let median = |figure| summary.spread(figure).map(|spread| spread.median);
        let (peak, cpu) = (median(Figure::PeakRss)?, median(Figure::Cpu)?);
        Some(Self { options: options.to_owned(), peak, steady: median(Figure::SteadyRss), cpu })
    }

    /// Peak and steady memory, by the geometric mean of their ratios to the default's.
    fn memory(&self, default: &Self) -> f64 {
        let peak = self.peak / default.peak;
        match (self.steady, default.steady) {
            (Some(own), Some(default)) if default > 0.0 => (peak * own / default).sqrt(),
            _ => peak,
        }
    }

    fn row(&self) -> Vec<String> {
        let bytes = |value: f64| format::bytes(value as u64);
        let steady = self.steady.map_or("-".to_owned(), bytes);
        vec![name(&self.options).to_owned(), bytes(self.peak), steady, format::seconds(self.cpu)]
    }
}

fn name(options: &str) -> &str {
    if options.is_empty() { DEFAULT } else { options }
}

/// The setting to prove: `found` of the replay, one of the caches, or both; empty for the default.
///
/// # Errors
/// The library is not there, or the table cannot be printed.
pub fn best(args: &args::Tune, found: &str, goal: Goal, stream: Stream) -> Result<String, Failure> {
    let both = CACHES.map(|cache| if found.is_empty() { cache.to_owned() } else { format!("{found},{cache}") });
    let mut settings = vec![String::new(), found.to_owned()];
    settings.extend(both);
    settings.dedup();
    let named: Vec<(&str, &str)> = settings.iter().map(|options| (name(options), options.as_str())).collect();
    let runs = runs(&args.command, &named, ROUNDS, "trial")?;
    let tried: Vec<Tried> = settings.iter().filter_map(|options| Tried::of(&runs, options)).collect();
    // The proof reports runs that fail.
    let Some(default) = tried.first().filter(|tried| tried.options.is_empty()) else { return Ok(found.to_owned()) };
    let head = ["setting", "peak RSS", "steady RSS", "CPU time"].map(str::to_owned).to_vec();
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(tried.iter().map(Tried::row)).collect();
    let text = format!(
        "\na trace does not show thread caches; so on the program, medians of {ROUNDS} rounds\n\n{}",
        format::table(&rows, &[0])
    );
    stream.write(&text).map_err(|e| format!("cannot print the table: {e}"))?;
    Ok(choose(&tried, default, found, goal).to_owned())
}

fn choose<'t>(tried: &'t [Tried], default: &Tried, found: &'t str, goal: Goal) -> &'t str {
    let allowed = |one: &&Tried| goal == Goal::Rss || one.cpu <= MOST_CPU * default.cpu;
    let least = tried.iter().filter(allowed).min_by(|a, b| a.memory(default).total_cmp(&b.memory(default)));
    least.filter(|one| one.memory(default) <= WORTH).map_or(found, |one| &one.options)
}

#[cfg(test)]
mod tests;
