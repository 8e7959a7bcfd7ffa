//! Arrows between the modules of a crate: the paths by which files name each other, without tests.
//! Re-exported names count for the declaring file.

use super::files::File;
use super::lex::Source;
use super::{Complaint, is_product};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

const MOST: usize = 8;

/// From the bottom up. A module below a named one belongs to its layer.
const ORDERS: [(&str, &str); 2] = [
    (
        "heap",
        "misuse hooks page_map mark shuffle page_heap gate lent record length search shard huge thread_cache heap kept spans limits \
         gather morph central large huge_object sparse_object owned sampled find refill beyond cpu_cache maintain census shape",
    ),
    (
        "malloc",
        "here errno observe thread options::wrong options::environment observe::text observe::segment observe::mailbox \
         observe::trace observe::numbered_path observe::shared profile start::page_heap start::hardening thread::admission thread::registry thread::nested::area \
         govern::background govern::limits statics thread::tls thread::mode thread::nested observe::telemetry observe::report \
         govern::notice observe::profile_file sampling govern hooks debug thread::leave start govern::actions thread::life fork front observe::recording \
         heaps caches hints batch sizes options observe::stats observe::json observe::inspect options::remote \
         start::lifecycle",
    ),
];

struct Unit<'a> {
    name: String,
    modules: Vec<Module<'a>>,
}

struct Module<'a> {
    file: &'a File,
    source: &'a Source,
    path: Vec<String>,
    uses: Vec<Use>,
}

struct Use {
    path: Vec<String>,
    name: String,
    is_public: bool,
}

struct Measure {
    arrows: usize,
    circle: Vec<String>,
    upward: Vec<(String, String)>,
}

pub fn check(files: &[File]) -> Vec<Complaint> {
    let mut found = Vec::new();
    for unit in units(files) {
        let Measure { circle, upward, .. } = unit.measure();
        let path = format!("crate {}", unit.name);
        if circle.len() > MOST {
            let (n, files) = (circle.len(), circle.join(" "));
            found.push(Complaint::new(&path, 0, format!("a circle of {n} files, the most is {MOST}: {files}")));
        }
        for file in unit.strays() {
            found.push(Complaint::new(file, 0, "no `mod` declares it, so that nothing is made of it: take it out"));
        }
        for (from, to) in upward {
            found.push(Complaint::new(&path, 0, format!("{from} names {to}, which is no layer before it")));
        }
        for name in unit.order().into_iter().flatten().filter(|name| !unit.has(name)) {
            found.push(Complaint::new(
                &path,
                0,
                format!("no module is {name}: take it out of ORDERS (xtask/src/tidy/modules.rs)"),
            ));
        }
        for file in unit.without_layer() {
            found.push(Complaint::new(
                file,
                0,
                "in no layer: give its module a place in ORDERS (xtask/src/tidy/modules.rs)",
            ));
        }
    }
    found
}

pub fn write(files: &[File]) -> String {
    let mut out = String::from("crate                 files  arrows  largest circle  upward\n");
    for unit in units(files) {
        let Measure { arrows, circle, upward } = unit.measure();
        let upward = if unit.order().is_some() { upward.len().to_string() } else { "-".to_owned() };
        let (name, modules) = (&unit.name, unit.modules.len());
        let _ = writeln!(out, "{name:<20} {modules:6} {arrows:7} {:15} {upward:>7}", circle.len());
    }
    out
}

pub fn write_one(files: &[File], name: &str) -> Result<String, String> {
    let units = units(files);
    let Some(unit) = units.iter().find(|unit| unit.name == name) else {
        let names: Vec<&str> = units.iter().map(|unit| unit.name.as_str()).collect();
        return Err(format!("there is no crate {name}; there are: {}", names.join(", ")));
    };
    let arrows: Vec<BTreeSet<usize>> = (0..unit.modules.len()).map(|i| unit.arrows_of(i)).collect();
    let mut files: Vec<usize> = (0..arrows.len()).collect();
    files.sort_by_key(|i| reachable(&arrows, *i).len());
    let path = |i: usize| unit.modules[i].path.join("::");
    let line = |i: usize| {
        let named: Vec<String> = arrows[i].iter().map(|to| path(*to)).collect();
        format!("{}: {}\n", path(i), named.join(" "))
    };
    Ok(files.into_iter().map(line).collect())
}

/// Outside of tests and models.
pub fn product(files: &[File]) -> Vec<(String, &File)> {
    let mut found = Vec::new();
    for Unit { name, modules } in units(files) {
        found.extend(modules.iter().map(|m| (name.clone(), m.file)));
    }
    found
}

fn units(files: &[File]) -> Vec<Unit<'_>> {
    let mut units: BTreeMap<String, Vec<Module<'_>>> = BTreeMap::new();
    for file in files.iter().filter(|file| is_product(file)) {
        let Some(source) = &file.rust else { continue };
        let path = file.path.strip_prefix("crates/").unwrap_or(&file.path);
        let Some((owner, inner)) = path.split_once("/src/") else { continue };
        let mut path: Vec<String> = inner.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
        let mut name = owner.to_owned();
        if path[0] == "bin" && path.len() > 1 {
            name = format!("{owner}/{}", path[1]);
            path.drain(..2);
        }
        path.pop_if(|last| ["lib", "main", "mod"].contains(&last.as_str()));
        units.entry(name).or_default().push(Module { file, source, path, uses: uses(source) });
    }
    let mut units: Vec<Unit<'_>> = units.into_iter().map(|(name, modules)| Unit { name, modules }).collect();
    units.iter_mut().for_each(Unit::drop_models);
    units
}

fn uses(source: &Source) -> Vec<Use> {
    let mut found = Vec::new();
    let depths = depths(source);
    for (i, token) in source.tokens.iter().enumerate() {
        if token.text == "use" && !source.is(i + 1, "<") && !source.lines[token.line].in_test {
            let is_public = i > 0 && (source.is(i - 1, "pub") || source.is(i - 1, ")"));
            let mut named = Vec::new();
            tree(source, i + 1, &[], is_public, &mut named);
            named.iter_mut().for_each(|u| seen_from_file(&mut u.path, depths[i]));
            found.append(&mut named);
        }
    }
    found
}

fn depths(source: &Source) -> Vec<usize> {
    let mut ends = Vec::new();
    let depth = |i: usize| {
        ends.retain(|end| *end > i);
        let depth = ends.len();
        if source.is(i, "mod") && source.is(i + 2, "{") {
            ends.push(source.behind_group(i + 2));
        }
        depth
    };
    (0..source.tokens.len()).map(depth).collect()
}

/// Each module takes up a `super`.
fn seen_from_file(path: &mut Vec<String>, depth: usize) {
    let start = usize::from(path.first().is_some_and(|name| name == "self"));
    let supers = path[start..].iter().take_while(|name| *name == "super").count();
    if supers.min(depth) > 0 {
        path.drain(..start + supers.min(depth));
        if supers <= depth {
            path.insert(0, "self".to_owned());
        }
    }
}

/// Of a `use` at `i`, behind `before`; returns the index behind it.
fn tree(source: &Source, mut i: usize, before: &[String], is_public: bool, into: &mut Vec<Use>) -> usize {
    let mut path = before.to_vec();
    while let Some(token) = source.tokens.get(i) {
        match token.text.as_str() {
            "{" => {
                i += 1;
                while i < source.tokens.len() && !source.is(i, "}") {
                    i = tree(source, i, &path, is_public, into);
                }
                return i + 1;
            }
            ":" => i += 1,
            "," if path.len() == before.len() => return i + 1,
            "," | "}" | ";" => break,
            "as" => {
                let name = source.tokens.get(i + 1).map_or(String::new(), |t| t.text.clone());
                into.push(Use { path, name, is_public });
                return i + 2;
            }
            word => {
                path.push(word.to_owned());
                i += 1;
            }
        }
    }
    // `a::{self, b}` names `a`.
    path.pop_if(|last| last == "self" && !before.is_empty());
    if let Some(name) = path.last().cloned() {
        into.push(Use { path, name, is_public });
    }
    i
}

impl Unit<'_> {
    /// Modules of protocols' models.
    fn drop_models(&mut self) {
        let under = |m: &Module<'_>| {
            let names = m.source.modules_under(&["test", "loom"]).into_iter();
            names.map(|i| [m.path.as_slice(), &[m.source.tokens[i + 1].text.clone()]].concat()).collect::<Vec<_>>()
        };
        let out: Vec<Vec<String>> = self.modules.iter().flat_map(under).collect();
        self.modules.retain(|m| !out.iter().any(|path| m.path.starts_with(path)));
    }

    fn strays(&self) -> impl Iterator<Item = &str> {
        let is_declared = |m: &&Module<'_>| {
            let Some((name, above)) = m.path.split_last() else { return true };
            let tokens = self.find(above).map_or(&[][..], |i| &self.modules[i].source.tokens);
            let by_path = format!("path = \"{}.rs\"", m.path.join("/"));
            tokens.windows(2).any(|two| two[0].text == "mod" && two[1].text == *name)
                || self.modules.iter().any(|other| other.file.text.contains(&by_path))
        };
        self.modules.iter().filter(move |m| !is_declared(m)).map(|m| m.file.path.as_str())
    }

    fn find(&self, path: &[String]) -> Option<usize> {
        self.modules.iter().position(|m| m.path == path)
    }

    fn resolve(&self, from: usize, path: &[String], depth: usize) -> Option<usize> {
        let here = &self.modules[from];
        let mut at = here.path.clone();
        let mut rest = path;
        match path.first()?.as_str() {
            "crate" => at.clear(),
            "self" => {}
            "super" => _ = at.pop()?,
            name => {
                at.push(name.to_owned());
                if self.find(&at).is_none() {
                    let named = here.uses.iter().find(|u| u.name == name && depth < 9 && u.path[0] != name)?;
                    return self.resolve(from, &[&named.path[..], &path[1..]].concat(), depth + 1);
                }
            }
        }
        rest = &rest[1..];
        while rest.first().is_some_and(|name| name == "super") {
            at.pop()?;
            rest = &rest[1..];
        }
        let mut module = self.find(&at)?;
        while let Some((name, behind)) = rest.split_first() {
            at.push(name.clone());
            if let Some(child) = self.find(&at) {
                (module, rest) = (child, behind);
                continue;
            }
            let elsewhere = |u: &&Use| u.name == *name && depth < 9;
            let door = self.modules[module].uses.iter().find(elsewhere);
            let through = door.and_then(|u| self.resolve(module, &[&u.path[..], behind].concat(), depth + 1));
            return through.or(door.is_none().then_some(module));
        }
        Some(module)
    }

    fn arrows_of(&self, from: usize) -> BTreeSet<usize> {
        let Module { source, uses, .. } = &self.modules[from];
        let is_named = |name: &str| source.tokens.iter().filter(|t| t.text == *name).count() > 1;
        let imports = uses.iter().filter(|u| !u.is_public || is_named(&u.name));
        // An imported module counts where it is used.
        let is_module = |u: &&Use| {
            let target = self.resolve(from, &u.path, 0);
            target.is_some_and(|t| self.modules[t].path.last() == u.path.last())
        };
        let mut paths: Vec<Vec<String>> = imports.filter(|u| !is_module(u)).map(|u| u.path.clone()).collect();
        let depths = depths(source);
        let mut in_use = false;
        let mut i = 0;
        while i < source.tokens.len() {
            let start = i;
            in_use = source.is(i, "use") && !source.is(i + 1, "<") || in_use && !source.is(i, ";");
            let mut path = Vec::new();
            while source.is(i + 1, ":") && source.is(i + 2, ":") {
                path.push(source.tokens[i].text.clone());
                i += 3;
            }
            let is_inner = start >= 2 && source.is(start - 1, ":") && source.is(start - 2, ":");
            if !path.is_empty() && !in_use && !is_inner && !source.lines[source.tokens[start].line].in_test {
                path.extend(source.tokens.get(i).map(|t| t.text.clone()));
                seen_from_file(&mut path, depths[start]);
                paths.push(path);
            }
            i += 1;
        }
        paths.iter().filter_map(|path| self.resolve(from, path, 0)).filter(|to| *to != from).collect()
    }

    fn measure(&self) -> Measure {
        let arrows: Vec<BTreeSet<usize>> = (0..self.modules.len()).map(|i| self.arrows_of(i)).collect();
        let reach: Vec<BTreeSet<usize>> = (0..arrows.len()).map(|i| reachable(&arrows, i)).collect();
        let circles =
            (0..arrows.len()).map(|i| reach[i].iter().filter(|j| reach[**j].contains(&i)).collect::<Vec<_>>());
        let circle = circles.max_by_key(Vec::len).unwrap_or_default();
        let name = |i: usize| self.modules[i].file.path.rsplit_once("/src/").map_or("", |(_, name)| name).to_owned();
        let pairs = arrows.iter().enumerate().flat_map(|(i, to)| to.iter().map(move |j| (i, *j)));
        let upward = pairs.filter(|(i, j)| self.layer(*i) < self.layer(*j)).map(|(i, j)| (name(i), name(j))).collect();
        Measure {
            arrows: arrows.iter().map(BTreeSet::len).sum(),
            circle: circle.into_iter().map(|i| name(*i)).collect(),
            upward,
        }
    }

    fn order(&self) -> Option<impl Iterator<Item = &'static str>> {
        ORDERS.iter().find(|(name, _)| *name == self.name).map(|(_, order)| order.split_whitespace())
    }

    fn has(&self, name: &str) -> bool {
        self.modules.iter().any(|m| m.path.join("::") == name)
    }

    fn without_layer(&self) -> impl Iterator<Item = &str> {
        let files = self.modules.iter().enumerate().filter(|(_, m)| !m.path.is_empty());
        files.filter(|(i, _)| self.layer(*i) == usize::MAX).map(|(_, m)| m.file.path.as_str())
    }

    /// By the longest matching name; the root and unlisted modules are above all.
    fn layer(&self, module: usize) -> usize {
        let Some(order) = self.order() else { return 0 };
        let path = self.modules[module].path.join("::");
        let lies_in = |name: &str| path == name || path.starts_with(&format!("{name}::"));
        let named = order.enumerate().filter(|(_, name)| lies_in(name));
        named.max_by_key(|(_, name)| name.len()).map_or(usize::MAX, |(i, _)| i)
    }
}

fn reachable(arrows: &[BTreeSet<usize>], from: usize) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(at) = open.pop() {
        open.extend(arrows[at].iter().copied().filter(|to| reached.insert(*to)));
    }
    reached
}

#[cfg(test)]
mod tests;
