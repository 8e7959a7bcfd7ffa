//! Arrows between crates point down. Development dependencies are free, as are those under
//! `cfg(loom)`.

use super::Complaint;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

struct Crate {
    name: &'static str,
    below: &'static [&'static str],
    outside: Option<&'static [&'static str]>,
}

/// Every program that loads the library links it.
const fn core(name: &'static str, below: &'static [&'static str]) -> Crate {
    Crate { name, below, outside: Some(&[]) }
}

const fn tool(name: &'static str, below: &'static [&'static str]) -> Crate {
    Crate { name, below, outside: None }
}

const MALLOC: [&str; 9] = [
    "craton-base",
    "craton-os",
    "craton-frames",
    "craton-pages",
    "craton-slab",
    "craton-heap",
    "craton-objects",
    "craton-kit",
    "craton-tables",
];

const KIT: [&str; 6] = ["craton-base", "craton-os", "craton-slab", "craton-heap", "craton-objects", "craton-tables"];

const CLI: [&str; 7] =
    ["craton-base", "craton-os", "craton-pheap", "craton-inspect", "craton-lab", "craton-serve", "craton-tables"];

const PAPERS: [&str; 10] = [
    "craton-base",
    "craton-os",
    "craton-sim",
    "craton-frames",
    "craton-pages",
    "craton-pheap",
    "craton-slab",
    "craton-kv",
    "craton-lab",
    "craton-cli",
];

const CRATES: [Crate; 25] = [
    core("craton-base", &[]),
    core("craton-tables", &[]),
    Crate { name: "craton-os", below: &["craton-base", "craton-tables"], outside: Some(&["libc"]) },
    core("craton-sim", &["craton-base"]),
    core("craton-frames", &["craton-base"]),
    core("craton-frames-c", &["craton-frames"]),
    // With std: DRAM structures come from the global allocator.
    core("craton-pheap", &["craton-base", "craton-frames"]),
    core("craton-persistent", &["craton-base", "craton-os", "craton-pheap"]),
    core("craton-pheap-c", &["craton-persistent"]),
    core("craton-pages", &["craton-base"]),
    core("craton-slab", &["craton-base"]),
    // Of the system, the lock and restartable sequences; the rest through seams.
    core("craton-heap", &["craton-base", "craton-os", "craton-frames", "craton-pages", "craton-slab"]),
    core("craton-objects", &["craton-base", "craton-os", "craton-slab", "craton-heap", "craton-tables"]),
    core("craton-kit", &KIT),
    core("craton-malloc", &MALLOC),
    core("craton-preload", &["craton-base", "craton-os", "craton-malloc"]),
    core("craton", &["craton-base", "craton-os", "craton-malloc", "craton-tables"]),
    // Not the allocator, whose hooks at start and exit would be measured.
    tool("craton-lab", &["craton-base", "craton-sim", "craton-frames", "craton-pages"]),
    tool("craton-inspect", &["craton-tables"]),
    tool("craton-serve", &["craton-inspect", "craton-lab", "craton-tables"]),
    tool("craton-cli", &CLI),
    tool("craton-programs", &["craton", "craton-os", "craton-lab", "craton-tables"]),
    tool("craton-kv", &["craton-base", "craton-os", "craton-pheap"]),
    tool("craton-papers", &PAPERS),
    tool("xtask", &["craton-tables"]),
];

pub fn metadata(manifest: &Path) -> Result<String, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let out = Command::new(cargo)
        .args(["metadata", "--no-deps", "--format-version", "1", "--manifest-path"])
        .arg(manifest)
        .output()
        .map_err(|e| format!("cannot run `cargo metadata`: {e}"))?;
    if !out.status.success() {
        return Err(format!("`cargo metadata` failed: {}", String::from_utf8_lossy(&out.stderr).trim()));
    }
    String::from_utf8(out.stdout).map_err(|e| format!("`cargo metadata` wrote what is not UTF-8: {e}"))
}

pub fn check(metadata: &str) -> Result<Vec<Complaint>, String> {
    let document: Value =
        serde_json::from_str(metadata).map_err(|e| format!("cannot read what `cargo metadata` wrote: {e}"))?;
    let mut found = Vec::new();
    for package in list(&document, "packages") {
        let name = text(package, "name");
        let path = format!("package {name}");
        let Some(known) = CRATES.iter().find(|c| c.name == name) else {
            let text =
                "not in the order of the house: add it to CRATES in xtask/src/tidy/arrows.rs, with what it may name";
            found.push(Complaint::new(&path, 0, text));
            continue;
        };
        // Null: a normal dependency.
        let of_library = |d: &&Value| text(d, "kind") != "dev" && text(d, "target") != "cfg(loom)";
        for to in list(package, "dependencies").iter().filter(of_library).map(|d| text(d, "name")) {
            let ours = CRATES.iter().any(|c| c.name == to);
            let allowed = if ours { known.below.contains(&to) } else { known.outside.is_none_or(|o| o.contains(&to)) };
            if allowed {
                continue;
            }
            let below = names(known.below);
            let outside = known.outside.map_or("any".to_owned(), names);
            let text =
                format!("the arrow {name} → {to} is not allowed; {name} may name: {below}; from elsewhere: {outside}");
            found.push(Complaint::new(&path, 0, text));
        }
    }
    if found.is_empty() && list(&document, "packages").is_empty() {
        return Err("`cargo metadata` names no packages: is this the repository's root?".to_owned());
    }
    Ok(found)
}

fn names(list: &[&str]) -> String {
    if list.is_empty() { "none".to_owned() } else { list.join(", ") }
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or("")
}

#[cfg(test)]
mod tests;
