//! `craton-objects`: what one object costs, in a process of its own.
//!
//! **What.** Reads arguments, does one measurement of [`craton_papers::caching`] and prints it as one line of JSON. The experiments
//! `slab-speed` and `slab-objects` run it on each allocator.
//! **Failure.** Wrong usage is one line on standard error, and exit status 2; an allocator that is not there is exit status 1.

use craton_lab::print::print;
use craton_papers::caching::{From, MOST_BATCH, MOST_BYTES, Request, What, measure, types};
use std::process::ExitCode;

const USAGE: &str = "\
What it costs to take an object and give it back: a line of JSON, in nanoseconds for each object.

Usage: craton-objects FROM WHAT [--batch N] [--count N] [--repetitions N]

  FROM              malloc, cache (of libcraton.so, preloaded), slabs, power-of-two, lazy-buddy or fast-fits
  WHAT              a number of bytes, 8 to 1048576, or a type of constructed objects, for malloc and cache
  --batch N         take N, then give them back, 1 to 10000 (default 1)
  --count N         objects of a repetition (default 100000)
  --repetitions N   repetitions that count, after one that does not (default 7)
";

fn help() -> String {
    let types: Vec<String> = types::TYPES.iter().map(|of| format!("  {:<18}{}\n", of.name, of.about)).collect();
    format!(
        "{USAGE}\nTypes:\n{}\nExample: LD_PRELOAD=libcraton.so craton-objects cache mutex --batch 100\n",
        types.concat()
    )
}

fn number(name: &str, value: &str, least: usize, most: usize) -> Result<usize, String> {
    let parsed = value.parse().ok().filter(|n| (least..=most).contains(n));
    parsed.ok_or_else(|| format!("{name} {value:?}: give a whole number from {least} to {most}"))
}

/// The request, or none if the help was asked for.
fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Option<Request>, String> {
    let mut arguments = arguments.into_iter();
    let name = arguments.next().ok_or("name who serves; --help lists them")?;
    if name == "--help" || name == "-h" {
        return Ok(None);
    }
    let from = From::ALL.into_iter().find(|(named, _)| *named == name).map(|(_, from)| from);
    let from = from.ok_or_else(|| format!("{name:?} serves nothing here; --help lists who does"))?;
    let what = arguments.next().ok_or("say how many bytes, or name a type; --help lists them")?;
    let what = match types::find(&what) {
        Some(of) => What::Object(of),
        None if what.starts_with(|c: char| c.is_ascii_digit()) => What::Bytes(number("WHAT", &what, 8, MOST_BYTES)?),
        None => return Err(format!("{what:?} is no type and no number of bytes; --help lists the types")),
    };
    let mut request = Request { from, what, batch: 1, count: 100_000, repetitions: 7 };
    while let Some(option) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{option} needs a value; --help lists the options"))?;
        match option.as_str() {
            "--batch" => request.batch = number(&option, &value, 1, MOST_BATCH)?,
            "--count" => request.count = number(&option, &value, 1, 1_000_000_000)?,
            "--repetitions" => request.repetitions = number(&option, &value, 1, 10_000)?,
            _ => return Err(format!("{option:?} is no option; --help lists them")),
        }
    }
    Ok(Some(request))
}

fn main() -> ExitCode {
    let failed = |why: &str, status: u8| {
        eprintln!("craton-objects: {why}");
        ExitCode::from(status)
    };
    let text = match parse(std::env::args_os().skip(1).map(|a| a.to_string_lossy().into_owned())) {
        Err(why) => return failed(&why, 2),
        Ok(None) => help(),
        Ok(Some(request)) => match measure(&request).map(|found| serde_json::to_string(&found)) {
            Ok(Ok(line)) => line + "\n",
            Ok(Err(e)) => return failed(&format!("the result is no JSON: {e}"), 1),
            Err(why) => return failed(&why, 1),
        },
    };
    if print("craton-objects", &text) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Result<Option<Request>, String> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn arguments_are_read() {
        let request = of("slabs 200 --batch 9 --count 90 --repetitions 2").unwrap().unwrap();
        assert_eq!((request.from, request.batch, request.count, request.repetitions), (From::Slabs, 9, 90, 2));
        assert!(matches!(request.what, What::Bytes(200)));
        assert!(matches!(of("cache mutex").unwrap().unwrap().what, What::Object(of) if of.name == "mutex"));
        assert!(of("--help").unwrap().is_none());
    }

    #[test]
    fn wrong_usage_names_the_value() {
        for (line, part) in [
            ("", "--help"),
            ("heap 8", "\"heap\""),
            ("malloc", "bytes"),
            ("malloc no-such", "\"no-such\""),
            ("malloc 4", "\"4\""),
            ("malloc 8 --batch 0", "\"0\""),
            ("malloc 8 --count", "--count needs"),
            ("malloc 8 --fast 1", "\"--fast\""),
        ] {
            match of(line) {
                Err(why) => assert!(why.contains(part), "{line}: {why}"),
                Ok(_) => panic!("{line} is accepted"),
            }
        }
    }
}
