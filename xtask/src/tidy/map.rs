//! ARCHITECTURE.md's drawing: a row for each crate, users above; a column for each used crate: `●`
//! in its users' rows, `▼` in its own. Implied arrows are left out.

use super::arrows;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

pub const MANIFESTS: [&str; 2] = ["Cargo.toml", "papers/Cargo.toml"];

type Graph = BTreeMap<String, BTreeSet<String>>;

pub fn block(root: &Path) -> Result<String, String> {
    let mut graph = Graph::new();
    for manifest in MANIFESTS {
        add(&mut graph, &arrows::metadata(&root.join(manifest))?)?;
    }
    Ok(format!("```text\n{}```\n", draw(&graph)))
}

fn add(graph: &mut Graph, metadata: &str) -> Result<(), String> {
    let document: Value =
        serde_json::from_str(metadata).map_err(|e| format!("cannot read what `cargo metadata` wrote: {e}"))?;
    for package in document["packages"].as_array().into_iter().flatten() {
        let uses = package["dependencies"].as_array().into_iter().flatten();
        let uses = uses.filter(|d| d["kind"] != "dev" && d["target"] != "cfg(loom)" && d["path"].is_string());
        let uses = uses.filter_map(|d| d["name"].as_str()).map(short).collect();
        graph.insert(short(package["name"].as_str().unwrap_or_default()), uses);
    }
    Ok(())
}

fn short(name: &str) -> String {
    name.strip_prefix("craton-").unwrap_or(name).to_owned()
}

fn below<'a>(graph: &'a Graph, name: &str, into: &mut BTreeSet<&'a str>) {
    for used in graph.get(name).into_iter().flatten() {
        if into.insert(used) {
            below(graph, used, into);
        }
    }
}

fn height(graph: &Graph, name: &str) -> usize {
    graph[name].iter().filter(|used| graph.contains_key(*used)).map(|used| 1 + height(graph, used)).max().unwrap_or(0)
}

fn direct<'a>(graph: &'a Graph, name: &str) -> BTreeSet<&'a str> {
    let uses = &graph[name];
    let mut implied = BTreeSet::new();
    uses.iter().for_each(|used| below(graph, used, &mut implied));
    uses.iter().map(String::as_str).filter(|used| graph.contains_key(*used) && !implied.contains(used)).collect()
}

fn draw(graph: &Graph) -> String {
    let mut rows: Vec<(usize, &str)> = graph.keys().map(|name| (height(graph, name), name.as_str())).collect();
    rows.sort_by_key(|(height, name)| (std::cmp::Reverse(*height), *name));
    let rows: Vec<&str> = rows.into_iter().map(|(_, name)| name).collect();
    let row_of = |name: &str| rows.iter().position(|row| *row == name).unwrap_or(0);
    let arrows: BTreeMap<&str, BTreeSet<&str>> = rows.iter().map(|name| (*name, direct(graph, name))).collect();
    let columns: Vec<&str> =
        rows.iter().copied().filter(|name| arrows.values().any(|used| used.contains(name))).collect();
    let first_user = |name: &str| rows.iter().position(|user| arrows[user].contains(name)).unwrap_or(0);
    let width = rows.iter().map(|name| name.len()).max().unwrap_or(0);
    let mut out = String::new();
    for (y, name) in rows.iter().enumerate() {
        let mark = |column: &str| match () {
            () if column == *name => '▼',
            () if arrows[name].contains(column) => '●',
            () if first_user(column) < y && y < row_of(column) => '│',
            () => ' ',
        };
        let marks: Vec<char> = columns.iter().map(|column| mark(column)).collect();
        let last = marks.iter().rposition(|c| "▼●".contains(*c));
        let mut line = format!("{name:width$} ");
        for (x, c) in marks.iter().enumerate() {
            let is_crossed = last.is_some_and(|last| x <= last);
            line.push_str(if is_crossed { "──" } else { "  " });
            line.push(match c {
                ' ' if is_crossed => '─',
                '│' if is_crossed => '┼',
                c => *c,
            });
        }
        out += line.trim_end();
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests;
