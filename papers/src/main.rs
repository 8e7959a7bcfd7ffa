//! `craton-papers`: the experiments; `craton lab` becomes this program. A failed row is written
//! like others, with exit status 1. After Ctrl-C the figures so far are written.

use clap::Parser;
use craton_cli::failure::Failure;
use craton_cli::nearest;
use craton_cli::output::Output;
use craton_cli::place::tool;
use craton_cli::progress::Line;
use craton_cli::{allocators, args, signals, terminal};
use craton_lab::format;
use craton_papers::experiment::{self, Ask, EXPERIMENTS, Experiment, Findings};
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::Ordering::Relaxed;

/// The command line: that of `craton lab`.
#[derive(Parser)]
#[command(name = "craton-papers", about = "The experiments of `craton lab`")]
struct Papers {
    #[command(flatten)]
    lab: args::Lab,
}

fn main() -> ExitCode {
    signals::keep_large_files_an_error();
    let done = match Papers::parse().lab.task {
        args::LabTask::List => list(),
        args::LabTask::Run(args) => run(&args),
    };
    done.unwrap_or_else(|failure| {
        terminal::say(&format!("craton: {failure}\n"));
        failure.status()
    })
}

/// Without the programs' paths.
fn command() -> Vec<OsString> {
    ["craton", "lab"].map(OsString::from).into_iter().chain(env::args_os().skip(1)).collect()
}

fn list() -> Result<ExitCode, Failure> {
    let row = |e: &Experiment| vec![e.name.to_owned(), e.about.to_owned(), format!("[{}]", e.answers)];
    let text = format::table(&EXPERIMENTS.iter().map(row).collect::<Vec<_>>(), &[0, 1, 2]);
    let written = terminal::Stream::Out.write(&text);
    written.map(|()| ExitCode::SUCCESS).map_err(|e| Failure::Failed(format!("cannot print the list: {e}")))
}

fn run(args: &args::LabRun) -> Result<ExitCode, Failure> {
    let experiments = args.names.iter().map(|name| find(name)).collect::<Result<Vec<_>, _>>()?;
    if let Some(twice) = (1..args.names.len()).find(|i| args.names[..*i].contains(&args.names[*i])) {
        return Err(Failure::Usage(format!("{:?} is named twice; name each experiment once", args.names[twice])));
    }
    let allocators = allocators::find(args.peers.as_deref(), &[])?;
    let mut json = args.json.as_deref().map(|path| Output::open("--json", path)).transpose()?;
    if let Some(directory) = &args.svg {
        fs::create_dir_all(directory).map_err(|e| {
            Failure::Failed(format!(
                "cannot make the folder {} for pictures: {e}; give --svg another path",
                directory.display()
            ))
        })?;
    }
    signals::catch(&signals::ENDING, signals::stop);
    let stream = Output::beside(json.as_ref());
    let print = |text: &str| stream.write(text).map_err(|e| Failure::Failed(format!("cannot print the table: {e}")));

    let mut documents = Vec::new();
    let mut failed = 0;
    let mut problem = None;
    for experiment in experiments {
        let line = Line::start();
        let ask = Ask {
            name: experiment.name,
            quick: args.quick,
            allocators: &allocators.list,
            peers_asked: args.peers.is_some(),
            runs: args.runs,
            only: &args.only,
            tool: &tool,
            command: &command(),
            stop: &signals::STOP,
            progress: &|workload, now| line.show(workload, now),
        };
        let found = (experiment.run)(&ask);
        drop(line);
        match found {
            Ok(found) => {
                failed += found.failed;
                // Only notes about allocators that took part.
                let takes_part = |note: &&String| note.split(':').next().is_some_and(|name| found.text.contains(name));
                let notes: String =
                    allocators.notes.iter().filter(takes_part).map(|note| format!("{note}\n")).collect();
                problem = print(&format!("== {}\n\n{}\n{notes}", experiment.name, found.text)).err().or(problem);
                problem = args.svg.as_deref().and_then(|to| pictures(to, experiment.name, &found).err()).or(problem);
                documents.push(found.document);
            }
            Err(why) => {
                // An error that begins with an option is about the call.
                let failure = if why.starts_with("--") { Failure::Usage } else { Failure::Failed };
                problem = Some(failure(format!("{}: {why}", experiment.name)));
            }
        }
        // A long list may be stopped.
        if let Some(json) = json.as_mut().filter(|json| !json.is_standard() && !documents.is_empty()) {
            json.write(&text(&documents))?;
        }
        if signals::STOP.load(Relaxed) {
            break;
        }
    }
    if let Some(json) = json.as_mut().filter(|json| json.is_standard() && !documents.is_empty()) {
        json.write(&text(&documents))?;
    }
    if let Some(problem) = problem {
        return Err(problem);
    }
    if signals::STOP.load(Relaxed) {
        return Err(Failure::Failed("stopped; the figures are of the runs so far".to_owned()));
    }
    match failed {
        0 => Ok(ExitCode::SUCCESS),
        _ => Err(Failure::Failed(format!("{failed} runs did not succeed and are in no figure; the rows say why"))),
    }
}

fn text(documents: &[String]) -> String {
    match documents {
        [one] => one.clone(),
        several => format!("[\n{}]\n", several.join(",\n")),
    }
}

fn pictures(directory: &Path, experiment: &str, found: &Findings) -> Result<(), Failure> {
    for (name, svg) in &found.pictures {
        let file = if name.is_empty() { format!("{experiment}.svg") } else { format!("{experiment}-{name}.svg") };
        let path = directory.join(file);
        fs::write(&path, svg).map_err(|e| Failure::Failed(format!("cannot write {}: {e}", path.display())))?;
    }
    Ok(())
}

fn find(name: &str) -> Result<&'static Experiment, Failure> {
    experiment::find(name).ok_or_else(|| {
        let names: Vec<&str> = EXPERIMENTS.iter().map(|experiment| experiment.name).collect();
        let meant = nearest(name, &names).map_or(String::new(), |name| format!("did you mean {name}? "));
        Failure::Usage(format!("there is no experiment {name:?}; {meant}experiments: {}", names.join(", ")))
    })
}
