//! `craton-crash`: a process that works with a zone of frames in a file until it is killed.
//!
//! **What.** The process of the experiment `llfree-crash`: [`craton_papers::frames::crash::work`] on the files that it is given.
//!
//! **Failure.** Wrong usage is one line on standard error, and exit status 2; a zone that is wrong is exit status 1. It ends with
//! status 0 when whoever started it has gone.

use craton_lab::print::print;
use craton_papers::frames::crash::{Task, work};
use std::os::unix::process::parent_id;
use std::process::ExitCode;

const USAGE: &str = "\
Gets and puts page frames of a zone in a file, until it is killed; `craton lab run llfree-crash` starts it.

Usage: craton-crash DIR FRAMES THREADS SEED closed|crashed

  DIR       where the zone and the record of what threads hold are
  FRAMES    frames of the zone
  THREADS   threads that work, which are the zone's processors
  SEED      where the random numbers start
  closed    how the zone must have been left; otherwise this ends with an error

Exit status: 1 when the zone is wrong, 2 for wrong usage, 0 when the process that started it has ended.
";

/// What to do; nothing for help.
fn parse(arguments: &[String]) -> Result<Option<Task>, String> {
    if arguments.iter().any(|argument| argument == "--help" || argument == "-h") {
        return Ok(None);
    }
    let [directory, frames, threads, seed, left] = arguments else {
        return Err(format!("{} words were given, and five are needed; --help shows them", arguments.len()));
    };
    let number = |name: &str, value: &String, least: u64| {
        let parsed = value.parse::<u64>().ok().filter(|number| *number >= least);
        parsed.ok_or_else(|| format!("{name} {value:?}: give a whole number from {least} on"))
    };
    let closed = match left.as_str() {
        "closed" => true,
        "crashed" => false,
        _ => return Err(format!("{left:?}: give `closed` or `crashed`")),
    };
    Ok(Some(Task {
        directory: directory.into(),
        frames: number("FRAMES", frames, 1)? as usize,
        threads: number("THREADS", threads, 1)? as usize,
        seed: number("SEED", seed, 0)?,
        closed,
    }))
}

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).map(|a| a.to_string_lossy().into_owned()).collect();
    let parent = parent_id();
    let (status, why) = match parse(&arguments) {
        Ok(None) => return if print("craton-crash", USAGE) { ExitCode::SUCCESS } else { ExitCode::FAILURE },
        Ok(Some(task)) => match work(&task, || parent_id() == parent) {
            Ok(()) => return ExitCode::SUCCESS,
            Err(why) => (1, why),
        },
        Err(why) => (2, why),
    };
    eprintln!("craton-crash: {why}");
    ExitCode::from(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Result<Option<Task>, String> {
        parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn arguments_are_read_and_wrong_ones_named() {
        let task = Task { directory: "d".into(), frames: 9, threads: 2, seed: 7, closed: true };
        assert_eq!(of("d 9 2 7 closed"), Ok(Some(task)));
        assert_eq!(of("--help"), Ok(None));
        for (line, part) in
            [("d 9 2 7", "4 words"), ("d 0 2 7 closed", "\"0\""), ("d 9 x 7 closed", "\"x\""), ("d 9 2 7 so", "\"so\"")]
        {
            assert!(of(line).is_err_and(|why| why.contains(part)), "{line}");
        }
    }
}
