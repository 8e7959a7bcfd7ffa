//! A lab program that prints a line of JSON. An error begins with [`NOT_SERVED`] where the
//! allocator does not serve.

use super::Ask;
use super::sheet::Row;
use craton_lab::measure::{Allocator, once};
use craton_lab::micro::process::{Ended, Process};
use craton_lab::scratch::Scratch;
use serde::de::DeserializeOwned;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub const NOT_SERVED: &str = "not served";

pub struct Tool<'a> {
    ask: &'a Ask<'a>,
    program: PathBuf,
    scratch: Scratch,
    limit: Duration,
}

impl<'a> Tool<'a> {
    /// `limit`: of each process.
    pub fn new(ask: &'a Ask<'a>, name: &str, limit: Duration) -> Result<Self, String> {
        let program = (ask.tool)(name)?;
        let program = std::path::absolute(&program).unwrap_or(program);
        Ok(Self { ask, program, scratch: Scratch::new("what the processes write")?, limit })
    }

    /// `None`: the caller stops.
    pub fn run<T: DeserializeOwned>(&self, allocator: &Allocator, arguments: &[String]) -> Option<Result<T, String>> {
        let (variables, library) = match once::environment(allocator) {
            Ok(environment) => environment,
            Err(why) => return Some(Err(format!("{NOT_SERVED}: {why}"))),
        };
        let mut command = vec![self.program.as_os_str().to_owned()];
        command.extend(arguments.iter().map(OsString::from));
        let process = Process::start(&command, &variables, self.scratch.path(), "line", self.limit);
        let output = match process.and_then(|one| one.finish(self.ask.stop)) {
            Err(e) => return Some(Err(format!("cannot start {}: {e}", self.program.display()))),
            Ok(Ended::Stopped) => return None,
            Ok(Ended::TimedOut) => return Some(Err(format!("took longer than {} s", self.limit.as_secs()))),
            Ok(Ended::Done(output)) => output,
        };
        if library.as_deref().is_some_and(|library| once::was_refused(library, &output.stderr)) {
            return Some(Err(format!("{NOT_SERVED}: {} cannot be preloaded", allocator.name)));
        }
        if let Some(why) = output.failure() {
            return Some(Err(format!("failed: {why}")));
        }
        Some(parse(&output.stdout, library.as_ref()))
    }
}

pub fn parse<T: DeserializeOwned>(line: &str, library: Option<&PathBuf>) -> Result<T, String> {
    let wrong = |e| format!("{line:?} is no result of the program: {e}");
    let found: Row = serde_json::from_str(line.trim()).map_err(wrong)?;
    let is_c_library = |path: &Path| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("libc.so"));
    if let Some(from) = found["malloc_from"].as_str()
        && is_c_library(Path::new(from)) != library.is_none_or(|library| is_c_library(library))
    {
        return Err(format!("{NOT_SERVED}: malloc came from {from}"));
    }
    serde_json::from_value(found).map_err(wrong)
}
