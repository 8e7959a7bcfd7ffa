//! Tips for a wrong command line.

use crate::args::Args;
use crate::failure::Failure;
use crate::terminal::{Stream, WIDTH, plain, wrap};
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory, Error};
use std::ffi::OsString;
use std::io;
use std::process::ExitCode;
use strsim::osa_distance;

const WITH_PROGRAM: [&str; 2] = ["run", "compare"];

/// `typed`: the words behind `craton`.
pub fn explain(mut error: Error, typed: &[OsString]) -> Error {
    let words: Vec<String> = typed.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let first = words.first().map(String::as_str).unwrap_or_default();
    let tip = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            // The parser has a tip for `rum`, none for `rnu` or `cmopare`, and lists no commands.
            error.remove(ContextKind::SuggestedSubcommand);
            text(&error, ContextKind::InvalidSubcommand).and_then(|wrong| commands(first, &wrong))
        }
        ErrorKind::UnknownArgument => {
            // The parser suggests to pass the option as a value.
            error.remove(ContextKind::Suggested);
            text(&error, ContextKind::InvalidArg)
                .and_then(|wrong| dashes(&words, &wrong).or_else(|| target(first, &words, &wrong)))
        }
        ErrorKind::MissingRequiredArgument => missing(&words),
        ErrorKind::MissingSubcommand if first == "core" => match taken_for_core(&words) {
            Some(wrong) => {
                let usage = error.get(ContextKind::Usage).cloned();
                error = Error::new(ErrorKind::InvalidSubcommand).with_cmd(&Args::command());
                usage.into_iter().for_each(|usage| drop(error.insert(ContextKind::Usage, usage)));
                error.insert(ContextKind::InvalidSubcommand, ContextValue::String(wrong.clone()));
                commands(first, &wrong)
            }
            None => misspelt(&words),
        },
        _ => None,
    };
    let typed = |(kind, value): (ContextKind, &ContextValue)| match value {
        ContextValue::String(text) => Some((kind, ContextValue::String(plain(text)))),
        ContextValue::Strings(texts) => {
            Some((kind, ContextValue::Strings(texts.iter().map(|text| plain(text)).collect())))
        }
        _ => None,
    };
    let shown: Vec<_> = error.context().filter_map(typed).collect();
    for (kind, value) in shown {
        error.insert(kind, value);
    }
    if let Some(tip) = tip {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(plain(&tip))]));
    }
    error
}

/// The parser calls help and version errors.
pub fn print(help: &Error) -> Result<ExitCode, Failure> {
    match Stream::Out.write(&wrap(&help.to_string(), WIDTH)) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(Failure::Failed(format!("cannot print the help: {e}"))),
        _ => Ok(ExitCode::SUCCESS),
    }
}

fn text(error: &Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        _ => None,
    }
}

/// Nearest to `wrong`, and all.
fn commands(first: &str, wrong: &str) -> Option<String> {
    let all = Args::command();
    let (above, command) = match all.find_subcommand(first) {
        Some(command) => (format!("craton {first}"), command),
        None => ("craton".to_owned(), &all),
    };
    let names: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
    Some(match nearest(wrong, &names) {
        Some(name) => format!("did you mean `{above} {name}`? commands: {}", names.join(", ")),
        None => format!("commands: {}", names.join(", ")),
    })
}

pub fn nearest<'a>(wrong: &str, names: &[&'a str]) -> Option<&'a str> {
    let nearest = names.iter().copied().min_by_key(|name| osa_distance(name, wrong))?;
    (osa_distance(nearest, wrong) <= nearest.len().div_ceil(2)).then_some(nearest)
}

/// If `wrong` begins the program.
fn dashes(words: &[String], wrong: &str) -> Option<String> {
    let command = words.first().filter(|word| WITH_PROGRAM.contains(&word.as_str()))?;
    if wrong.starts_with('-') {
        return Some(format!(
            "`craton {command} --help` lists the options; those of the program follow `--` and its name"
        ));
    }
    let at = words.iter().skip(1).position(|word| word == wrong)? + 1;
    let quoted = |words: &[String]| words.iter().map(|word| format!(" {}", quote(word))).collect::<String>();
    // A `--` that came too late is not the program's.
    let program: Vec<String> = words[at..].iter().filter(|word| *word != "--").cloned().collect();
    Some(format!("`--` is missing before the program to run: craton{} --{}", quoted(&words[..at]), quoted(&program)))
}

/// With `--pid` a core file's place has a misspelt command.
fn taken_for_core(words: &[String]) -> Option<String> {
    if !words.iter().any(|word| word.starts_with("--pid")) {
        return None;
    }
    let mut rest = words.iter().skip(1);
    loop {
        match rest.next()?.as_str() {
            "--pid" | "--exe" | "--json" => drop(rest.next()),
            word if word.starts_with('-') => (),
            word => return Some(word.to_owned()),
        }
    }
}

/// Nearest to a word.
fn misspelt(words: &[String]) -> Option<String> {
    let all = Args::command();
    let names: Vec<&str> = all.find_subcommand("core")?.get_subcommands().map(Command::get_name).collect();
    let name = words[1..].iter().find_map(|word| nearest(word, &names))?;
    Some(format!("did you mean `craton core {name}`?"))
}

/// If `wrong` may be a process or core file in the wrong place.
fn target(command: &str, words: &[String], wrong: &str) -> Option<String> {
    let all = Args::command();
    let is_task = |name: &str| all.find_subcommand("core").is_some_and(|core| core.find_subcommand(name).is_some());
    let tip = match (command, wrong) {
        ("core", wrong) if is_task(wrong) => format!("give one command at a time; run `{wrong}` by itself"),
        ("core", _) if words.iter().any(|word| word.starts_with("--pid")) => return None,
        ("core", wrong) if !wrong.starts_with('-') => {
            format!("the core file comes before the command, such as: craton core {} stats", quote(wrong))
        }
        ("set", "--pid") => "the process id comes first, without an option: craton set 1234 thp=always".to_owned(),
        _ => return None,
    };
    Some(tip)
}

/// Options of `compare` that want `--load`.
const OF_A_SERVER: [&str; 4] = ["--ready", "--ready-timeout", "--duration", "--figure"];

fn missing(words: &[String]) -> Option<String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["compare", ..] if words.contains(&"--load") && !words.contains(&"--ready") => {
            Some("give --ready, a command that succeeds once the server answers".to_owned())
        }
        ["compare", ..] if !words.contains(&"--load") && words.iter().any(|word| OF_A_SERVER.contains(word)) => {
            let what = "give --load, a command that loads the server, and --ready, one that succeeds once it answers";
            Some(what.to_owned())
        }
        [command, ..] if WITH_PROGRAM.contains(command) => {
            Some(format!("name the program to run behind `--`, such as: craton {command} -- ls /"))
        }
        ["lab", "run", ..] => Some("name an experiment; `craton lab list` shows them".to_owned()),
        ["set", ..] => Some("give a process id and options, such as: craton set 1234 thp=always".to_owned()),
        ["profile" | "get", ..] => {
            Some("give a process id, such as 1234, or a file; `craton top` lists processes".to_owned())
        }
        ["replay" | "tune", ..] => Some("name a file that `craton run --trace FILE -- PROGRAM` recorded".to_owned()),
        _ => None,
    }
}

pub fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,:=+@%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests;
