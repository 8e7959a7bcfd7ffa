//! `craton profile`: who holds the memory of a process, by function and line.
//!
//! **What.** Reads the library's samples of a running process without stopping it, of a core file,
//! or in a file of `craton run --profile`; under `debug=audit` each live buffer, exactly.
//!
//! **Failure.** Status 1 with the reason.

mod flame;
mod pprof;
pub(crate) mod table;

use crate::args;
use crate::failure::Failure;
use crate::input;
use crate::output::{Output, command, put};
use craton_inspect::{CoreFile, Lines, Measure, PROFILE_MAGIC, PerfMap, Profile, Stacks, add_captive, root_of};
use craton_lab::document::Document;
use craton_lab::ratios::Ratios;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::process::ExitCode;

pub fn profile(args: &args::Profile) -> Result<ExitCode, Failure> {
    let mut json = Output::json(args.json.as_deref())?;
    let mut profile = open(&args.target, args.exe.as_deref())?;
    let measure = measure_of(args);
    if measure != Measure::Live && profile.exact.objects > 0 {
        return Err(Failure::Usage(format!(
            "--{}: debug=audit knows live objects only; leave the option out, or run without audit",
            measure.option()
        )));
    }
    if args.captive {
        let Some(pid) = pid_of(&args.target) else {
            return Err(Failure::Usage("--captive: needs a running process; give its id instead of a file".to_owned()));
        };
        add_captive(&mut profile, pid)?;
    }
    let old = args.diff.as_deref().map(|old| open(old, args.exe.as_deref())).transpose()?;
    let root = pid_of(&args.target).map(root_of);
    let mut lines = lines_of(&profile).with_root(root.clone());
    let mut stacks = Stacks::of(&profile, &mut lines);
    if let Some(old) = &old {
        // Of the same process, perhaps in a container.
        stacks = stacks.since(&Stacks::of(old, &mut lines_of(old).with_root(root.filter(|_| old.pid == profile.pid))));
    }
    let is_quiet = [&args.save, &args.pprof, &args.flame, &args.folded].iter().any(|to| to.is_some());
    if let Some(to) = &args.save {
        put("--save", to, &profile.bytes())?;
    }
    if let Some(to) = &args.pprof {
        put("--pprof", to, &pprof::compressed(&profile, &mut lines)?)?;
    }
    if let Some(to) = &args.flame {
        put("--flame", to, &flame::picture(&profile.name, &stacks, measure)?)?;
    }
    if let Some(to) = &args.folded {
        put("--folded", to, stacks.folded(measure).as_bytes())?;
    }
    if let Some(json) = &mut json {
        json.document(&Document::new("profile", &command(), &[], vec![stacks.row(&profile)], &Ratios::default()))?;
    }
    if !is_quiet {
        let text = table::text(&profile, old.as_ref(), &stacks, measure, args);
        Output::beside(json.as_ref()).write(&text).map_err(|e| format!("cannot print the profile: {e}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn measure_of(args: &args::Profile) -> Measure {
    let asked = [(args.peak, Measure::Peak), (args.total, Measure::Total), (args.short, Measure::Short)];
    let asked = asked.into_iter().chain([(args.captive, Measure::Captive)]).find(|(is_asked, _)| *is_asked);
    asked.map_or(Measure::Live, |(_, measure)| measure)
}

pub(crate) fn lines_of(profile: &Profile) -> Lines<'_> {
    Lines::new(&profile.maps).with_run_time(PerfMap::of(profile.pid))
}

fn pid_of(target: &Path) -> Option<u32> {
    target.to_str().and_then(|text| text.parse().ok()).filter(|_| !target.exists())
}

/// A process by its number, a profile, or a core file.
fn open(target: &Path, exe: Option<&Path>) -> Result<Profile, Failure> {
    let name = target.display();
    if let Some(pid) = pid_of(target) {
        return Ok(Profile::of_process(pid)?);
    }
    input::check_file(target, "a heap profile, a core file or a process id")?;
    let mut start = [0; 8];
    let read = File::open(target).and_then(|mut file| file.read(&mut start));
    let len = read.map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => format!("there is neither a process nor a file {name}"),
        _ => format!("cannot read {name}: {e}"),
    })?;
    if start[..len].starts_with(b"\x7fELF") {
        return Ok(Profile::of(&CoreFile::open(target, exe)?)?);
    }
    if len == start.len() && start != PROFILE_MAGIC {
        return Err(format!(
            "{name}: neither a heap profile nor a core file; `craton run --profile=FILE -- CMD` writes a profile"
        )
        .into());
    }
    let bytes = fs::read(target).map_err(|e| format!("cannot read {name}: {e}"))?;
    Ok(Profile::parse(&name.to_string(), &bytes)?)
}
