//! The prompt of `craton core … shell`.
//!
//! **What.** Each line is a command of `craton core` with its options; the target stays. On a
//! terminal lines can be edited, and those of earlier days are kept in
//! `$XDG_STATE_HOME/craton/history`. A wrong line prints why, and the prompt goes on. A command is
//! a process: Ctrl-C ends it, and a stopped target goes on.

use crate::args::{self, CoreTask};
use crate::failure::Failure;
use crate::signals;
use crate::terminal::{plain, say};
use crate::usage::nearest;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, FromArgMatches as _, Subcommand as _};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Config, Editor};
use std::io::{self, BufRead, IsTerminal};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{self, ExitCode};

const PROMPT: &str = "craton> ";

/// Status 1 if a line of standard input failed; a terminal's user has seen why.
pub fn run(target: &args::Core) -> Result<ExitCode, Failure> {
    if target.json.is_some() {
        let what = "--json belongs to a single command; the prompt prints text";
        return Err(Failure::Usage(what.to_owned()));
    }
    // A target that cannot be read has no prompt.
    super::memory::Opener::new(super::target(target)?, target.exe.as_deref(), &CoreTask::Shell).check()?;
    if !io::stdin().is_terminal() {
        let mut all_well = true;
        for line in io::stdin().lock().split(b'\n') {
            let line = line.map_err(|e| format!("cannot read standard input: {e}"))?;
            let line = String::from_utf8_lossy(&line);
            if is_end(&line) {
                break;
            }
            all_well &= perform(target, &line)?;
        }
        return Ok(if all_well { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let failed = |e: ReadlineError| format!("cannot read the terminal: {e}");
    let config = Config::builder().auto_add_history(true).build();
    let mut editor: Editor<(), FileHistory> = Editor::with_config(config).map_err(failed)?;
    let history = history();
    if let Some(file) = &history {
        // A first prompt has none.
        let _ = editor.load_history(file);
    }
    say("craton: `help` lists the commands; `quit` or Ctrl-D ends\n");
    signals::outlive_interrupts();
    loop {
        match editor.readline(PROMPT) {
            Ok(line) if is_end(&line) => break,
            Ok(line) => {
                perform(target, &line)?;
            }
            Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {
                say("craton: this line has bytes that are not UTF-8; it is left out\n");
            }
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(failed(error).into()),
        }
    }
    if let Some(file) = &history
        && let Err(error) = file
            .parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .map_err(ReadlineError::Io)
            .and_then(|()| editor.save_history(file))
    {
        say(&format!("craton: the history is lost: {}: {error}\n", file.display()));
    }
    Ok(ExitCode::SUCCESS)
}

fn is_end(line: &str) -> bool {
    matches!(line.trim(), "quit" | "exit" | "q")
}

fn history() -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/state"));
    Some(state.or_else(home)?.join("craton/history"))
}

/// Whether the line was right, and did not fail.
fn perform(target: &args::Core, line: &str) -> Result<bool, Failure> {
    let words: Vec<&str> = line.split_whitespace().collect();
    if words.is_empty() || words[0].starts_with('#') {
        return Ok(true);
    }
    let prompt = Command::new("craton").no_binary_name(true).subcommand_required(true).disable_version_flag(true);
    let usage = "COMMAND, or `COMMAND --help`; `quit` ends";
    let parser = CoreTask::augment_subcommands(prompt.override_usage(usage));
    let names: Vec<String> = parser.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    let parsed = parser.try_get_matches_from(&words).and_then(|matches| CoreTask::from_arg_matches(&matches));
    match parsed {
        Ok(CoreTask::Shell) => {
            say("craton: this is the prompt already; `help` lists the commands\n");
            Ok(false)
        }
        Ok(_) => run_command(target, &words),
        Err(error) if error.kind() == ErrorKind::InvalidSubcommand => {
            let wrong = match error.get(ContextKind::InvalidSubcommand) {
                Some(ContextValue::String(wrong)) => wrong,
                _ => words[0],
            };
            say(&format!("craton: {}\n", no_command(&names, wrong)));
            Ok(false)
        }
        Err(error) => {
            say(&error.render().to_string());
            Ok(!error.use_stderr())
        }
    }
}

fn no_command(names: &[String], wrong: &str) -> String {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let meant = nearest(wrong, &names).map_or(String::new(), |name| format!("did you mean `{name}`? "));
    format!("there is no command `{}`; {meant}commands: {}, help, quit", plain(wrong), names.join(", "))
}

fn run_command(target: &args::Core, words: &[&str]) -> Result<bool, Failure> {
    let failed = |e: io::Error| format!("cannot start a command of the prompt: {e}");
    let mut command = process::Command::new(std::env::current_exe().map_err(failed)?);
    command.arg("core").stdin(process::Stdio::null());
    if let Some(pid) = target.pid {
        command.arg("--pid").arg(pid.to_string());
    }
    if let Some(exe) = &target.exe {
        command.arg("--exe").arg(exe);
    }
    if let Some(core) = &target.core {
        // A name may begin with a hyphen.
        command.arg(std::path::absolute(core).map_err(failed)?);
    }
    let status = command.args(words).status().map_err(failed)?;
    if status.signal() == Some(libc::SIGINT) {
        say("\n");
    }
    Ok(status.success())
}
