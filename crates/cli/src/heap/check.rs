//! `craton heap check`.

use super::print::show;
use super::recovery::Recovery;
use super::{file, view};
use crate::failure::Failure;
use crate::output::Output;
use crate::terminal::plain;
use craton_lab::format::{self, plural};
use craton_pheap::{Error, Identity};
use serde::Serialize;
use std::path::Path;
use std::process::ExitCode;

#[derive(Serialize)]
struct Row {
    file: String,
    is_whole: bool,
    damage: Option<String>,
    damage_at: Option<u64>,
    damage_in: Option<String>,
    recovery: Option<Recovery>,
}

pub fn check(path: &Path, json: Option<&mut Output>) -> Result<ExitCode, Failure> {
    let opened = view::open(path)?;
    let mut row = Row {
        file: path.to_string_lossy().into_owned(),
        is_whole: true,
        damage: None,
        damage_at: None,
        damage_in: None,
        recovery: None,
    };
    let mut found = |error: Error, identity: Option<Identity>| {
        let Error::Damaged { what, at } = error else { return Err(file::broken(path, error)) };
        let region = identity.map(|identity| identity.place_of(at));
        row.is_whole = false;
        (row.damage, row.damage_at, row.damage_in) = (Some(what.to_owned()), Some(at), region.clone());
        let region = region.map_or(String::new(), |region| format!(" ({region})"));
        Ok(format!("damaged: {what} at {at:#x}{region}\n"))
    };
    let text = match opened {
        Err(error) => {
            let identity = view::map(path).ok().and_then(|view| Identity::read(&view).ok());
            found(error, identity)?
        }
        Ok(opened) => {
            let recovery = Recovery::new(&opened.identity, &opened.report);
            let text = match opened.heap.verify() {
                Err(error) => found(error, Some(opened.identity))?,
                Ok(()) => {
                    let stats = opened.heap.stats();
                    let objects = plural(stats.small + stats.large, "object");
                    let bytes = format::bytes(stats.small_bytes + stats.large_bytes);
                    format!("whole: {objects}, {bytes}, in {}\n", plural(stats.slabs, "slab"))
                }
            };
            row.recovery = Some(recovery);
            recovery.note() + &text
        }
    };
    let name = plain(&row.file);
    let text: String = text.lines().map(|line| format!("{name}: {line}\n")).collect();
    let code = if row.is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    show(&text, "heap check", row, json)?;
    Ok(code)
}
