//! `craton run`: a program on Craton.
//!
//! **What.** Becomes the program, by `exec`; with `--stats` or `--trace`, or where the debugging
//! kit may report ([`checked`]), one process stays ([`served`]). The program gets the default
//! SIGPIPE, which Rust's runtime changes.
//!
//! **Cost.** Less than a millisecond.

mod checked;
mod code_quality;
mod ended;
mod findings;
mod forward;
mod kinds;
mod listener;
mod record;
mod reports;
mod sarif;
mod served;
mod suppress;
mod traces;
mod unserved;

pub use ended::contents;

use crate::args;
use crate::failure::Failure;
use crate::library;
use crate::options::{self, Setting};
use crate::program::{self, Obstacle};
use crate::terminal::say;
use checked::Checked;
use std::env;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use traces::Traces;

/// Where no process stays it returns only on failure.
pub fn run(args: &args::Run) -> Result<ExitCode, Failure> {
    let name = args::program(&args.command)?;
    options::agree(&args.options)?;
    for (flag, is_given) in [("trace", args.trace.is_some()), ("profile", args.profile.is_some())] {
        options::only_by_flag(&args.options, flag, is_given)?;
    }
    let library = library::find()?;
    let mut command = Command::new(name);
    command.args(&args.command[1..]);
    let obstacle = program::warning(name);
    let others = env::var_os("LD_PRELOAD");
    match obstacle.as_ref().map(|(obstacle, _)| obstacle) {
        // It would not start.
        Some(Obstacle::Musl) => match library::without(others.as_deref()) {
            none if none.is_empty() => command.env_remove("LD_PRELOAD"),
            others => command.env("LD_PRELOAD", others),
        },
        _ => command.env("LD_PRELOAD", library::preload(&library, others.as_deref())),
    };
    let wrong = |flag: &str, path: &Path, why: String| {
        Failure::Usage(format!("--{flag} {}: {why}; give another path", path.display()))
    };
    let file = |key: &str, flag: &str, path: &Option<PathBuf>| {
        let setting = path.as_deref().map(|path| Setting::file(key, path).map_err(|why| wrong(flag, path, why)));
        setting.transpose()
    };
    let traces = args.trace.as_deref().map(|path| Traces::new(path).map_err(|why| wrong("trace", path, why)));
    let (traces, trace) = match traces.transpose()?.flatten() {
        Some((traces, setting)) => (Some(traces), Some(setting)),
        None => (None, file("trace", "trace", &args.trace)?),
    };
    let profile = file("profile_file", "profile", &args.profile)?;
    let settings: Vec<Setting> = args.options.iter().cloned().chain(trace).chain(profile).collect();
    let asked = options::merge(env::var_os(options::VARIABLE).as_deref(), &settings);
    // Lines are not worth a program that does not run.
    let can_stay = |checked: &Checked<'_>| !checked.only_lines() || served::has_room();
    let checked = Checked::of(&args.checked, &asked, name)?.filter(can_stay);
    if args.stats || traces.is_some() || checked.is_some() {
        return served::run(command, args, &asked, traces.as_ref(), checked);
    }
    if !settings.is_empty() {
        command.env(options::VARIABLE, asked);
    }
    obstacle.iter().for_each(|(_, line)| say(line));
    Err(program::cannot_start(name, &command.exec()))
}
