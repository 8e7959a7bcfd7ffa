//! `speed`: every workload and real program on every allocator ([`craton_lab::ratios`]).

mod losses;
mod pictures;
mod table;

use super::ask::workload;
use super::series::{self, Case, Result};
use super::{Ask, Findings};
use crate::real::Size;
use crate::work::{self, WORKLOADS};
use craton_lab::ratios::{OURS, Ratios};
use craton_lab::scratch::Scratch;

const ROUNDS: usize = 5;

pub fn run(ask: &Ask<'_>) -> std::result::Result<Findings, String> {
    let program = ask.craton_work()?;
    let (allocators, refused) = series::prove(ask, vec![program.clone(), "list".into()]);
    let scratch = Scratch::new("the inputs of real programs")?;
    let percent = ask.form(work::QUICK, work::FULL);
    let mut cases: Vec<Case> = WORKLOADS.iter().map(|of| workload(&program, of.name, percent)).collect();
    let (real, mut missing) = series::real_cases(|_| !ask.quick);
    cases.extend(real);
    ask.choose(&mut cases)?;
    missing += &series::prepare(ask, &mut cases, &scratch, Size::Full);
    let warmup = ask.form(0, 1);
    let mut results = series::measure(ask, &allocators, cases, ask.rounds(1, ROUNDS), warmup);
    if !refused.is_empty() {
        results.push(Result { name: "proof".to_owned(), runs: refused });
    }
    let mut sheet = Result::sheet(ask, ask.allocators, &results)?;
    pictures::draw(&mut sheet, &results);
    let ratios = Ratios::of(&Result::runs(&results), OURS);
    sheet.findings(format!("{}{}{missing}", table::show(&results, &ratios), losses::show(&results)))
}
