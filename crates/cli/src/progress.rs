//! The progress line of a measurement.

use crate::terminal;
use craton_lab::measure::Progress;
use std::time::{Duration, Instant};

const CELLS: usize = 24;

pub struct Line {
    line: terminal::Progress,
    start: Instant,
}

impl Line {
    pub fn start() -> Self {
        Self { line: terminal::Progress::start(), start: Instant::now() }
    }

    pub fn show(&self, workload: &str, now: Progress<'_>) {
        self.line.show(&text(workload, now, self.start.elapsed()));
    }
}

fn text(workload: &str, now: Progress<'_>, elapsed: Duration) -> String {
    let full = (CELLS * now.done).checked_div(now.total).unwrap_or(0);
    let bar = format!("{}{}", "#".repeat(full), ".".repeat(CELLS - full));
    let round = now.round.map_or("warm-up".to_owned(), |round| format!("round {}", round + 1));
    let left = left(now, elapsed).map_or(String::new(), |left| format!(", about {left} left"));
    format!("[{bar}] {}/{} {workload}: {} ({round}){left}", now.done + 1, now.total, now.allocator)
}

fn left(now: Progress<'_>, elapsed: Duration) -> Option<String> {
    let each = elapsed.as_secs_f64() / (now.done > 0).then_some(now.done as f64)?;
    let seconds = (each * now.total.saturating_sub(now.done) as f64).ceil() as u64;
    Some(if seconds < 100 { format!("{seconds} s") } else { format!("{} min", seconds.div_ceil(60)) })
}

#[cfg(test)]
mod tests;
