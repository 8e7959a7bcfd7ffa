//! `slab-debug`: what the debugging kit costs real programs.
//!
//! **What.** Real programs on Craton: kit off; sampled at the default rate; checks that need no
//! separate pages; all checks but the search for leaks, which comes after the program's work.
//!
//! **From.** Bonwick94 §6 has no figures; GWP-ASan (arXiv 2311.09394) allows 0.5 % of time.

use super::series::{self, Result};
use super::{Ask, Findings};
use crate::real::Size;
use craton_lab::format::{seconds, table};
use craton_lab::measure::Allocator;
use craton_lab::ratios::OURS;
use craton_lab::scratch::Scratch;
use craton_lab::summary::{Figure, ratio, summarize};

/// The forms of the kit: the name's end, and the option.
const FORMS: [(&str, &str); 3] = [
    ("sampled", "guard_sample=auto"),
    ("checks", "debug=audit,redzone,poison,verify"),
    ("all", "debug=audit,redzone,poison,verify,guard,unmap"),
];
const ROUNDS: usize = 3;
const QUICK: [&str; 2] = ["python3", "gcc"];

pub fn run(ask: &Ask<'_>) -> std::result::Result<Findings, String> {
    let allocators = allocators(ask)?;
    let scratch = Scratch::new("the inputs of real programs")?;
    let all = !ask.quick || !ask.only.is_empty();
    let (mut cases, mut missing) = series::real_cases(|real| all || QUICK.contains(&real.name));
    ask.choose(&mut cases)?;
    missing += &series::prepare(ask, &mut cases, &scratch, ask.form(Size::Quick, Size::Full));
    let results = series::measure(ask, &allocators, cases, ask.rounds(1, ROUNDS), ask.form(0, 1));
    let sheet = Result::sheet(ask, &allocators, &results).map_err(|why| format!("{why}\n{missing}"))?;
    sheet.findings(format!("{}{missing}", show(&results)))
}

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
