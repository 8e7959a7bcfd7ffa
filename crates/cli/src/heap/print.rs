//! Figures of a heap file as text and as a document.

use crate::failure::Failure;
use crate::output::{Output, command};
use craton_lab::document::Document;
use craton_lab::format;
use craton_lab::ratios::Ratios;
use serde::Serialize;

pub fn show<R: Serialize>(text: &str, name: &str, row: R, json: Option<&mut Output>) -> Result<(), Failure> {
    let printed = Output::beside(json.as_deref()).write(text);
    if let Some(json) = json {
        json.document(&Document::new(name, &command(), &[], vec![row], &Ratios::default()))?;
    }
    Ok(printed.map_err(|e| format!("cannot print the figures: {e}"))?)
}

pub fn lines(rows: &[(&str, String)]) -> String {
    let rows: Vec<Vec<String>> = rows.iter().map(|(name, value)| vec![(*name).to_owned(), value.clone()]).collect();
    format::table(&rows, &[0, 1])
}

pub fn table(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>, left: &[usize]) -> String {
    let head = head.iter().map(|cell| (*cell).to_owned()).collect();
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    format::table(&rows, left)
}
