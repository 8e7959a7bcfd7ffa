//! `craton heap`: files of persistent heaps. Failures, and damage that `check` finds: status 1 with
//! one line that names the file.

mod check;
mod compact;
mod create;
mod dump;
mod file;
mod info;
mod picture;
mod print;
mod recovery;
mod repair;
mod stats;
mod view;

use crate::args::{self, HeapTask};
use crate::failure::Failure;
use crate::output::Output;
use std::process::ExitCode;

pub fn heap(args: &args::Heap) -> Result<ExitCode, Failure> {
    let (path, svg) = match &args.task {
        HeapTask::Create(args) => (&args.file, None),
        HeapTask::Dump(args) => (&args.file, args.svg.as_deref()),
        HeapTask::Info { file }
        | HeapTask::Check { file }
        | HeapTask::Stats { file }
        | HeapTask::Repair { file, .. }
        | HeapTask::Compact { file } => (file, None),
    };
    file::refuse_output(path, svg)?;
    file::refuse_output(path, args.json.as_deref())?;
    let mut json = Output::json(args.json.as_deref())?;
    let json = json.as_mut();
    match &args.task {
        HeapTask::Create(args) => create::create(args, json),
        HeapTask::Info { file } => info::info(file, json),
        HeapTask::Check { file } => check::check(file, json),
        HeapTask::Stats { file } => stats::stats(file, json),
        HeapTask::Dump(args) => dump::dump(args, json),
        HeapTask::Repair { file, yes, lose_journal } => repair::repair(file, *yes, *lose_journal, json),
        HeapTask::Compact { file } => compact::compact(file, json),
    }
}
