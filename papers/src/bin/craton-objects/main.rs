//! `craton-objects`: what one object costs, in a process of its own.
//!
//! **What.** Does one measurement of [`craton_papers::caching`] and prints it as one line of JSON. The experiments
//! `slab-speed` and `slab-objects` run it on each allocator.
//! **Failure.** Wrong usage is exit status 2; an allocator that is not there is exit status 1.

use clap::Parser;
use clap::builder::RangedU64ValueParser as Range;
use craton_lab::print::print;
use craton_papers::caching::{From, MOST_BATCH, MOST_BYTES, Request, What, measure, types};
use std::process::ExitCode;

/// What it costs to take an object and give it back: a line of JSON, in nanoseconds for each object.
#[derive(Debug, Parser)]
#[command(after_help = after_help())]
struct Arguments {
    /// malloc, cache (of libcraton.so, preloaded), slabs, power-of-two, lazy-buddy or fast-fits
    #[arg(value_parser = from)]
    from: From,
    /// A number of bytes, 8 to 1048576, or a type of constructed objects, for malloc and cache
    #[arg(value_parser = what)]
    what: What,
    /// Take N, then give them back
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = Range::<usize>::new().range(1..=MOST_BATCH as u64))]
    batch: usize,
    /// Objects of a repetition
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = Range::<usize>::new().range(1..=1_000_000_000))]
    count: usize,
    /// Repetitions that count, after one that does not
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = Range::<usize>::new().range(1..=10_000))]
    repetitions: usize,
}

fn after_help() -> String {
    let types: String = types::TYPES.iter().map(|of| format!("  {:<18}{}\n", of.name, of.about)).collect();
    format!("Types:\n{types}\nExample: LD_PRELOAD=libcraton.so craton-objects cache mutex --batch 100")
}

fn from(name: &str) -> Result<From, String> {
    let found = From::ALL.into_iter().find(|(named, _)| *named == name);
    found.map(|(_, from)| from).ok_or_else(|| "serves nothing here; --help lists what does".to_owned())
}

fn what(name: &str) -> Result<What, String> {
    match (types::find(name), name.parse()) {
        (Some(of), _) => Ok(What::Object(of)),
        (None, Ok(bytes)) if (8..=MOST_BYTES).contains(&bytes) => Ok(What::Bytes(bytes)),
        (None, Ok(_)) => Err(format!("give a whole number from 8 to {MOST_BYTES}")),
        (None, Err(_)) => Err("no type and no number of bytes; --help lists the types".to_owned()),
    }
}

fn main() -> ExitCode {
    let Arguments { from, what, batch, count, repetitions } = Arguments::parse();
    let found = measure(&Request { from, what, batch, count, repetitions });
    let line = found.and_then(|found| serde_json::to_string(&found).map_err(|e| format!("the result is no JSON: {e}")));
    match line {
        Ok(line) if print("craton-objects", &format!("{line}\n")) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("craton-objects: {why}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests;
