//! The profile for people: a line a function.

use crate::args;
use crate::terminal::plain;
use craton_inspect::{Call, Measure, Profile, Stack, Stacks, Sum};
use craton_lab::format;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

pub fn text(
    profile: &Profile,
    old: Option<&Profile>,
    stacks: &Stacks,
    measure: Measure,
    args: &args::Profile,
) -> String {
    let mut text = head(profile, old, stacks, measure);
    let all = rows(stacks, measure, usize::MAX);
    if all.len() == 1 {
        return text + &nothing(profile, old);
    }
    let shown = &all[..all.len().min(args.top.saturating_add(1))];
    let hidden = all.len() - shown.len();
    text += &format::table(shown, &[4]);
    if hidden > 0 {
        text += &format!("and {hidden} more functions; --top {} shows them\n", hidden + args.top);
    }
    if args.stacks {
        text += &whole_stacks(stacks, measure, args.top);
    }
    text
}

/// The head, and a row for each of the `top` functions with most bytes.
pub fn rows(stacks: &Stacks, measure: Measure, top: usize) -> Vec<Vec<String>> {
    let functions = functions(stacks, measure);
    let whole: u64 = functions.iter().map(|(_, [own, _])| own.bytes.unsigned_abs()).sum();
    let shown = functions.iter().filter(|(_, [own, _])| own.bytes != 0).take(top);
    let mut rows = vec![["bytes", "share", "objects", "with callees", "function"].map(str::to_owned).to_vec()];
    rows.extend(shown.map(|(call, [own, all])| {
        let share = format!("{:.1}%", own.bytes.unsigned_abs() as f64 * 100.0 / whole.max(1) as f64);
        vec![bytes(own.bytes), share, objects(own.objects), bytes(all.bytes), described(call.as_ref())]
    }));
    rows
}

/// The function that holds most live bytes, and its part of them in percent.
pub fn holder(stacks: &Stacks) -> Option<(String, u64)> {
    let functions = functions(stacks, Measure::Live);
    let whole: u64 = functions.iter().map(|(_, [own, _])| own.bytes.unsigned_abs()).sum();
    let (call, [own, _]) = functions.first().filter(|(call, _)| call.is_some())?;
    let percent = (own.bytes.unsigned_abs() * 100).checked_div(whole)?;
    Some((described(call.as_ref()), percent))
}

fn nothing(profile: &Profile, old: Option<&Profile>) -> String {
    let taken = profile.samples + profile.live_samples + old.map_or(0, |old| old.samples + old.live_samples);
    if taken > 0 || profile.exact.objects > 0 {
        return "nothing to show\n".to_owned();
    }
    let every = match profile.interval {
        0 => "none is due yet".to_owned(),
        bytes => format!("one is due for each {} on average", format::bytes(bytes)),
    };
    format!(
        "no sample was taken: {every}, and the program has allocated little. More come with a shorter distance: \
         `craton run -o profile=16K --profile=FILE -- CMD`; -o debug=audit knows each live object\n"
    )
}

fn head(profile: &Profile, old: Option<&Profile>, stacks: &Stacks, measure: Measure) -> String {
    let (name, sum) = (plain(&profile.name), stacks.sum().get(measure));
    let behind = if measure == Measure::Live { profile.live_samples } else { profile.samples };
    let samples =
        format!("estimated from {}, one in {}", format::plural(behind, "sample"), format::bytes(profile.interval));
    let samples = match profile.exact.objects {
        0 => samples,
        _ if profile.live_samples == 0 => "exact, by debug=audit".to_owned(),
        known => format!("{} exact, by debug=audit; the others {samples}", format::plural(known, "object")),
    };
    let bytes = bytes(sum.bytes);
    let what = match measure {
        Measure::Captive => format!("{bytes} of free memory held by {}", counted(sum.objects, "live object")),
        _ => format!("{bytes} in {} {}", counted(sum.objects, "object"), measure.name()),
    };
    let mut text = match old {
        Some(old) => format!("{name}, since {}: {what} ({samples})\n", plain(&old.name)),
        None => format!("{name}: {what} ({samples})\n"),
    };
    if profile.dropped > 0 {
        text += &format!("samples that were dropped, since the tables are full: {}\n", format::count(profile.dropped));
    }
    if profile.misses_small {
        text += "without small objects, which this program's Rust allocator frees by size alone: `craton top PID` counts \
                 them by size; preloaded, without the crate, the program has them in its profile\n";
    }
    text + "\n"
}

/// By their call outside of the language's library: own bytes, and with those of their callees.
fn functions(stacks: &Stacks, measure: Measure) -> Vec<(Option<Call>, [Sum; 2])> {
    let mut own: BTreeMap<Option<&Call>, Sum> = BTreeMap::new();
    let mut all: BTreeMap<&str, Sum> = BTreeMap::new();
    for stack in &stacks.0 {
        let sum = stack.sums.get(measure);
        own.entry(stack.owner()).or_default().add(sum);
        let names: BTreeSet<&str> = stack.calls.iter().map(|call| call.function.as_str()).collect();
        names.into_iter().for_each(|name| all.entry(name).or_default().add(sum));
    }
    let with = |call: Option<&Call>, own: Sum| call.map_or(own, |call| all[call.function.as_str()]);
    let mut found: Vec<_> = own.into_iter().map(|(call, sum)| (call.cloned(), [sum, with(call, sum)])).collect();
    found.sort_by_key(|(_, [own, _])| Reverse(own.bytes.unsigned_abs()));
    found
}

fn whole_stacks(stacks: &Stacks, measure: Measure, most: usize) -> String {
    let mut sorted: Vec<&Stack> = stacks.0.iter().filter(|stack| stack.sums.get(measure).bytes != 0).collect();
    sorted.sort_by_key(|stack| Reverse(stack.sums.get(measure).bytes.unsigned_abs()));
    let one = |stack: &&Stack| {
        let sum = stack.sums.get(measure);
        let frames = stack.calls.iter().enumerate().map(|(i, call)| format!("    #{i} {}\n", described(Some(call))));
        format!(
            "\n{} in {}, allocated at:\n{}",
            bytes(sum.bytes),
            counted(sum.objects, "object"),
            frames.collect::<String>()
        )
    };
    sorted.iter().take(most).map(one).collect()
}

fn described(call: Option<&Call>) -> String {
    let Some(call) = call else { return "unknown: no stack".to_owned() };
    match call.place() {
        Some(place) => plain(&format!("{} {place}", call.function)),
        None if call.module.is_empty() => plain(&call.function),
        None => plain(&format!("{} ({})", call.function, call.module)),
    }
}

fn signed(number: i64, shown: impl Fn(u64) -> String) -> String {
    format!("{}{}", if number < 0 { "-" } else { "" }, shown(number.unsigned_abs()))
}

fn bytes(number: i64) -> String {
    signed(number, format::bytes)
}

fn objects(number: i64) -> String {
    signed(number, format::count)
}

fn counted(number: i64, noun: &str) -> String {
    signed(number, |number| format::plural(number, noun))
}
