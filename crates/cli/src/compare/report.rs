//! A comparison as text: the table, what it comes to, and the runs that failed.

use super::{BASE, OURS};
use crate::format::{bytes, columns, count, seconds, table};
use crate::{args, program};
use craton_lab::measure::{Run, Status};
use craton_lab::summary::{Figure, Ratio, Spread, Summary, ratio, summarize};

/// A figure's name, itself, its medians in a summary, and how they are shown.
type Line = (&'static str, Figure, fn(&Summary) -> Spread, fn(f64) -> String);

const LINES: [Line; 5] = [
    ("wall time", Figure::Wall, |s| s.wall_s, seconds),
    ("CPU time", Figure::Cpu, |s| s.cpu_s, seconds),
    ("peak RSS", Figure::PeakRss, |s| s.peak_rss_bytes, |v| bytes(v as u64)),
    ("minor faults", Figure::MinorFaults, |s| s.minor_faults, |v| count(v as u64)),
    ("on hugepages", Figure::Hugepages, |s| s.hugepage_bytes, |v| bytes(v as u64)),
];

/// What a cell shows that has no value.
const NONE: &str = "-";
/// Lines of a failed run's standard error that are shown.
const LAST_LINES: usize = 10;

/// Everything that there is to say of `runs`.
pub fn show(runs: &[Run], args: &args::Compare, colour: bool) -> String {
    let words: Vec<_> = args.command.iter().map(|word| word.to_string_lossy()).collect();
    let command: String = words.join(" ").chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect();
    let mut text = format!("{command}\n");
    let of = [summarize(runs, BASE), summarize(runs, OURS)];
    if of.iter().any(Option::is_some) {
        let [base, ours] = of.each_ref().map(|s| s.as_ref().map_or(0, |s| s.ok));
        text += &format!("medians; successful runs in turns: {BASE} {base}, {OURS} {ours}\n\n");
        text += &medians(runs, &of, colour);
        text += &in_words(runs).map(|words| format!("\n{words}\n")).unwrap_or_default();
    }
    text + &failures(runs, args)
}

fn medians(runs: &[Run], of: &[Option<Summary>; 2], colour: bool) -> String {
    let head = ["", BASE, OURS, &format!("{OURS}/{BASE}"), "spread"].map(str::to_owned).to_vec();
    let mut rows = vec![head];
    let mut paints = vec![""];
    for (name, figure, spread, show) in LINES {
        let ratio = ratio(runs, OURS, BASE, figure);
        let [base, ours] = of.each_ref().map(|s| s.as_ref().map_or(NONE.to_owned(), |s| show(spread(s).median)));
        let (of_medians, ends) = ratio.map_or((NONE.to_owned(), NONE.to_owned()), |r| {
            (format!("{:.2}", r.of_medians), format!("{:.2}-{:.2}", r.min, r.max))
        });
        rows.push(vec![name.to_owned(), base, ours, of_medians, ends]);
        // Memory on hugepages is neither good nor bad by itself.
        paints.push(ratio.filter(|_| colour && figure != Figure::Hugepages).map_or("", paint));
    }
    let mut text = String::new();
    for (mut row, paint) in columns(&rows, &[0]).into_iter().zip(paints) {
        if !paint.is_empty() {
            row[3] = format!("{paint}{}\x1b[0m", row[3]);
        }
        text += &format!("{}\n", row.join("  "));
    }
    text
}

/// Green where Craton needs less in every round, red where it needs more in every round.
fn paint(ratio: Ratio) -> &'static str {
    match ratio {
        Ratio { max, .. } if max < 1.0 => "\x1b[32m",
        Ratio { min, .. } if min > 1.0 => "\x1b[31m",
        _ => "",
    }
}

/// What the ratios come to; none where there are none.
fn in_words(runs: &[Run]) -> Option<String> {
    let part = |figure, name| Some(difference(ratio(runs, OURS, BASE, figure)?, name));
    let parts = [part(Figure::Wall, "wall time")?, part(Figure::PeakRss, "peak memory")?];
    Some(format!("On Craton, compared with glibc: {}.", parts.join(", ")))
}

fn difference(ratio: Ratio, name: &str) -> String {
    let percent = (ratio.of_medians - 1.0) * 100.0;
    if (ratio.min <= 1.0 && ratio.max >= 1.0) || percent.abs() < 0.5 {
        return format!("no clear difference in {name}");
    }
    format!("{:.0} % {} {name}", percent.abs(), if percent < 0.0 { "less" } else { "more" })
}

/// The runs that are in no median, and for the first of each allocator what may explain it.
fn failures(runs: &[Run], args: &args::Compare) -> String {
    let failed: Vec<&Run> = runs.iter().filter(|run| run.status != Status::Ok).collect();
    if failed.is_empty() {
        return String::new();
    }
    let row =
        |run: &&Run| vec![format!("  {}", run.allocator), format!("round {}", run.index + 1), run.status.to_string()];
    let mut text =
        format!("\nruns that do not count:\n{}", table(&failed.iter().map(row).collect::<Vec<_>>(), &[0, 1, 2]));
    for allocator in [BASE, OURS] {
        let Some(first) = failed.iter().find(|run| run.allocator == allocator) else { continue };
        if first.status == Status::NotServed {
            let why = program::why_not_served(&args.command[0]);
            text += &format!("\n{allocator}: no process reported that Craton served it: {why}\n");
        }
        if !first.stderr.trim().is_empty() {
            text +=
                &format!("\nlast on standard error, {allocator}, round {}:\n{}", first.index + 1, end(&first.stderr));
        }
    }
    text
}

/// The last lines of `text`, indented, and without what would move a terminal's cursor.
fn end(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let plain =
        |line: &&str| line.chars().map(|c| if c.is_control() && c != '\t' { '?' } else { c }).collect::<String>();
    lines[lines.len().saturating_sub(LAST_LINES)..].iter().map(|line| format!("  {}\n", plain(line))).collect()
}

#[cfg(test)]
mod tests;
