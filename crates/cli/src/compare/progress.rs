//! The line that says, on a terminal, which run is under way.

use crate::terminal;
use craton_lab::measure::Progress;

/// The line, and the rounds that count.
pub struct Line {
    line: terminal::Progress,
    runs: usize,
}

impl Line {
    /// A line for a comparison of so many rounds.
    pub fn new(runs: usize) -> Self {
        Self { line: terminal::Progress::new(), runs }
    }

    /// Shows where the comparison stands.
    pub fn show(&self, now: Progress<'_>) {
        self.line.show(&text(now, self.runs));
    }
}

fn text(now: Progress<'_>, runs: usize) -> String {
    let kind = if now.warmup { "warm-up".to_owned() } else { format!("one of {runs} rounds") };
    format!("[{}/{}] {} ({kind}) …", now.done + 1, now.total, now.allocator)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_run_is_number_one() {
        let now = Progress { allocator: "craton", warmup: true, done: 0, total: 4 };
        assert_eq!(text(now, 1), "[1/4] craton (warm-up) …");
        assert_eq!(text(Progress { warmup: false, done: 3, ..now }, 2), "[4/4] craton (one of 2 rounds) …");
    }
}
