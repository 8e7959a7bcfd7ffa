//! Ratios in words. A difference is clear if its interval excludes 1; others get no claim.

use super::{Column, Failure, count};
use crate::picture::{Estimate, Unit, is_craton};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clear {
    Less,
    More,
    Not,
}

fn clear(ratio: &Estimate) -> Clear {
    match ratio.interval {
        Some((low, high)) if low > 0.0 && high < 1.0 => Clear::Less,
        Some((low, high)) if low > 1.0 && high.is_finite() => Clear::More,
        _ => Clear::Not,
    }
}

/// The class of style: `less` is a gain, `more` a loss.
pub fn class(ratio: &Estimate, more_is_better: bool) -> &'static str {
    match clear(ratio) {
        Clear::Not => "same",
        clear if (clear == Clear::More) == more_is_better => "less",
        _ => "more",
    }
}

/// `On Craton: 12 % less wall time (95 % interval 8–15 %). Compared with glibc.`
pub fn sentence(column: &Column, base: &str) -> String {
    let name = if is_craton(&column.name) { capital(&column.name) } else { column.name.clone() };
    if column.name == base {
        return format!("{name} is what the others are compared with.");
    }
    let is_clear = |ratio: &Estimate| ratio.interval.is_none() || clear(ratio) != Clear::Not;
    let known = || column.figures.iter().filter_map(|figure| Some((figure, figure.ratio.as_ref()?)));
    let of_clear = known().filter(|(_, ratio)| is_clear(ratio));
    let mut parts: Vec<String> = of_clear.map(|(figure, ratio)| difference(ratio, &figure.name, figure.unit)).collect();
    let unclear = known().filter(|(_, ratio)| !is_clear(ratio));
    let unclear: Vec<&str> = unclear.map(|(figure, _)| figure.name.as_str()).collect();
    if let Some((last, others)) = unclear.split_last() {
        let others = if others.is_empty() { String::new() } else { format!("{} or ", others.join(", ")) };
        parts.push(format!("no clear difference in {others}{last}"));
    }
    if parts.is_empty() {
        return format!("Nothing can be said of {name}: no round has a successful run of both it and {base}.");
    }
    format!("On {name}, compared with {base}: {}.", parts.join(", "))
}

fn difference(ratio: &Estimate, name: &str, unit: Unit) -> String {
    let Some((low, high)) = ratio.interval else {
        return format!("{} times the {name} (too few rounds to be sure)", number(ratio.value));
    };
    if clear(ratio) == Clear::Less {
        let (least, most) = (percent(1.0 - high), percent(1.0 - low));
        let fewer = if unit == Unit::Count { "fewer" } else { "less" };
        return format!(
            "{}\u{a0}% {fewer} {name} (95\u{a0}% interval {least}–{most}\u{a0}%)",
            percent(1.0 - ratio.value)
        );
    }
    if ratio.value >= 2.0 {
        let (value, low, high) = (number(ratio.value), number(low), number(high));
        return format!("{value} times the {name} (95\u{a0}% interval {low}–{high})");
    }
    let (least, most) = (percent(low - 1.0), percent(high - 1.0));
    format!("{}\u{a0}% more {name} (95\u{a0}% interval {least}–{most}\u{a0}%)", percent(ratio.value - 1.0))
}

/// `−12 % (−15 to −8)`, `× 2.31 (2.20 to 2.45)`; breaks only before the interval.
pub fn short(ratio: &Estimate) -> String {
    let factor = ratio.value >= 2.0 || ratio.value < 0.1;
    let write = |value: f64| if factor { number(value) } else { signed(value - 1.0) };
    let value = if factor {
        format!("×\u{a0}{}", number(ratio.value))
    } else {
        format!("{}\u{a0}%", signed(ratio.value - 1.0))
    };
    match ratio.interval {
        Some((low, high)) => format!("{value} ({}\u{a0}to\u{a0}{})", write(low), write(high)),
        None => value,
    }
}

pub fn failures(failures: &[Failure]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for failure in failures {
        match counts.iter_mut().find(|(name, _)| *name == failure.allocator) {
            Some((_, count)) => *count += 1,
            None => counts.push((&failure.allocator, 1)),
        }
    }
    let parts: Vec<String> = counts.iter().map(|(name, count)| format!("{count} of {name}")).collect();
    format!("{} failed: {}.", count(failures.len(), "run"), parts.join(", "))
}

fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent.abs() {
        p if !p.is_finite() => "–".to_owned(),
        p if p < 9.95 => format!("{percent:.1}"),
        _ => format!("{percent:.0}"),
    }
}

fn signed(share: f64) -> String {
    let text = percent(share.abs());
    match share {
        _ if matches!(text.as_str(), "0.0" | "–") => text,
        s if s < 0.0 => format!("−{text}"),
        _ => format!("+{text}"),
    }
}

fn number(value: f64) -> String {
    Unit::Ratio.write(value)
}

pub fn capital(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
