//! `craton heap`: files of persistent heaps.
//!
//! **What.** A module for each command: [`create`], [`info`], [`check`], [`stats`], [`dump`],
//! [`repair`], [`compact`]. [`view`] opens a file without changing it, [`file`](mod@file) words its
//! errors, [`recovery`] words the outcome of recovery.
//!
//! **Failure.** Status 1 with one line that names the file; also for damage that `check` finds.

mod check;
mod compact;
mod create;
mod dump;
mod file;
mod info;
mod picture;
mod recovery;
mod repair;
mod stats;
mod view;

use crate::args::{self, HeapTask};
use crate::command;
use crate::failure::Failure;
use crate::output::Output;
use craton_lab::document::Document;
use craton_lab::format;
use craton_lab::ratios::Ratios;
use serde::Serialize;
use std::process::ExitCode;

pub fn heap(args: &args::Heap) -> Result<ExitCode, Failure> {
    let mut json = Output::json(args.json.as_deref())?;
    let json = json.as_mut();
    match &args.task {
        HeapTask::Create(args) => create::create(args, json),
        HeapTask::Info { file } => info::info(file, json),
        HeapTask::Check { file } => check::check(file, json),
        HeapTask::Stats { file } => stats::stats(file, json),
        HeapTask::Dump(args) => dump::dump(args, json),
        HeapTask::Repair { file, yes } => repair::repair(file, *yes, json),
        HeapTask::Compact { file } => compact::compact(file, json),
    }
}

/// Prints the text, and writes the row as a document.
fn show<R: Serialize>(text: &str, name: &str, row: R, json: Option<&mut Output>) -> Result<(), Failure> {
    let printed = Output::beside(json.as_deref()).write(text);
    if let Some(json) = json {
        json.document(&Document::new(name, &command(), &[], vec![row], &Ratios::default()))?;
    }
    Ok(printed.map_err(|e| format!("cannot print the figures: {e}"))?)
}

/// Lines of a name and a value.
fn lines(rows: &[(&str, String)]) -> String {
    let rows: Vec<Vec<String>> = rows.iter().map(|(name, value)| vec![(*name).to_owned(), value.clone()]).collect();
    format::table(&rows, &[0, 1])
}

/// A table below a head.
fn table(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>, left: &[usize]) -> String {
    let head = head.iter().map(|cell| (*cell).to_owned()).collect();
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    format::table(&rows, left)
}
