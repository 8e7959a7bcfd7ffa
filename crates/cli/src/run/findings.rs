//! Reports with functions and lines; equal ones of several processes are one finding.

use super::reports::{Lost, RawFrame, Report, Role};
use super::suppress::Rules;
use craton_inspect::Call;
use craton_inspect::{Lines, demangled};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// Of calls, innermost first, by [`Role::name`].
type Stacks = BTreeMap<&'static str, Vec<Call>>;

/// A document's row.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    pub kind: String,
    /// For people.
    pub message: String,
    pub details: Vec<String>,
    /// Where to look first.
    pub place: Option<Call>,
    /// By who made them: `allocated`, `freed`, `found`; innermost first.
    pub stacks: Stacks,
    /// Process ids.
    pub processes: Vec<u32>,
    /// Their names. A process may run several by `exec`: the one that reported.
    pub programs: Vec<String>,
    pub times: u64,
    /// Of a leak.
    pub objects: u64,
    pub bytes: u64,
    pub held_objects: u64,
    pub held_bytes: u64,
    /// A rule for `--suppress`.
    pub rule: Option<String>,
    /// `FILE:LINE` of the rule that suppresses it.
    pub suppressed_by: Option<String>,
    #[serde(skip)]
    main: Role,
}

/// Names functions and lines, and knows which files are the user's.
pub struct Namer {
    lines: Lines<'static>,
    root: PathBuf,
}

impl Namer {
    /// `root`: of the sources.
    pub fn new(root: PathBuf) -> Self {
        Self { lines: Lines::new(&[]), root }
    }

    fn calls(&mut self, frame: &RawFrame) -> Vec<Call> {
        let own =
            |function: String, module: &str| vec![Call { function, file: None, line: None, module: module.to_owned() }];
        let symbol = frame.symbol.as_deref().map(demangled);
        let Some((path, at)) = &frame.place else {
            return own(symbol.unwrap_or_else(|| format!("{:#x}", frame.address)), "");
        };
        if !path.starts_with('/') {
            return own(symbol.unwrap_or_else(|| path.clone()), path);
        }
        let mut found = Call::outside(&self.lines.frames_in(path, *at));
        for call in &mut found {
            call.file = call.file.as_deref().map(normal);
        }
        match (found.as_slice(), symbol) {
            // The file is gone, or was replaced.
            ([one], Some(symbol)) if one.file.is_none() && one.function.contains("+0x") => own(symbol, path),
            _ => found,
        }
    }

    /// Whether the user's sources have the call's file.
    fn is_own(&self, call: &Call) -> bool {
        call.file.as_ref().is_some_and(|file| Path::new(file).starts_with(&self.root))
    }

    fn place<'c>(&self, calls: &'c [Call]) -> Option<&'c Call> {
        let placed = |call: &&Call| call.line.is_some() && !call.is_of_language();
        let own = calls.iter().filter(placed).find(|call| self.is_own(call));
        own.or_else(|| calls.iter().find(placed))
    }
}

/// The stacks to look at, the telling one first: a check that finds an old write does so in a call
/// that has nothing to do with it.
fn order(report: &Report) -> [Role; 3] {
    use Role::{Allocated, Found, Freed};
    let is_late = report.message.contains(", found by ") && !report.message.ends_with(" a watchpoint");
    match report.kind.as_str() {
        "leak" => [Allocated, Found, Freed],
        "use-after-free" if is_late => [Freed, Allocated, Found],
        _ if is_late => [Allocated, Found, Freed],
        _ => [Found, Freed, Allocated],
    }
}

/// In the order in which they appeared.
pub fn findings(reports: &[Report], namer: &mut Namer, rules: &Rules) -> Vec<Finding> {
    let mut places: BTreeMap<(String, String, Stacks), usize> = BTreeMap::new();
    let mut all: Vec<Finding> = Vec::new();
    for report in reports {
        let mut stacks = Stacks::new();
        for (role, frames) in &report.stacks {
            let calls = frames.iter().flat_map(|frame| namer.calls(frame)).collect();
            stacks.entry(role.name()).or_insert(calls);
        }
        // Without stacks only the words tell reports apart.
        let words = if stacks.values().all(Vec::is_empty) { report.message.clone() } else { String::new() };
        let key = (report.kind.clone(), words, stacks.clone());
        let place = *places.entry(key).or_insert_with(|| {
            all.push(Finding::new(report, stacks, namer, rules));
            all.len() - 1
        });
        all[place].add(report);
    }
    all
}

impl Finding {
    fn new(report: &Report, stacks: Stacks, namer: &Namer, rules: &Rules) -> Self {
        let calls = |role: Role| stacks.get(role.name()).map(Vec::as_slice).unwrap_or_default();
        let order = order(report);
        let placed = order.iter().find_map(|role| Some((*role, namer.place(calls(*role))?)));
        // Own sources before the first stack's, which may lie in a library alone.
        let own = order.iter().find_map(|role| {
            let call = namer.place(calls(*role)).filter(|call| namer.is_own(call))?;
            Some((*role, call))
        });
        let best = own.or(placed);
        let main = best.map_or(order[0], |(role, _)| role);
        let rule = calls(main).iter().find(|call| !call.is_of_language());
        Self {
            kind: report.kind.clone(),
            message: report.message.clone(),
            details: report.details.clone(),
            place: best.map(|(_, call)| call.clone()),
            processes: Vec::new(),
            programs: Vec::new(),
            times: 0,
            objects: 0,
            bytes: 0,
            held_objects: 0,
            held_bytes: 0,
            rule: rule.map(|call| format!("{} function=\"{}\"", report.kind, call.function.replace('"', "?"))),
            suppressed_by: rules.find(&report.kind, stacks.values().flatten()).map(|rule| rule.place.clone()),
            main,
            stacks,
        }
    }

    fn add(&mut self, report: &Report) {
        if !self.processes.contains(&report.pid) {
            self.processes.push(report.pid);
        }
        if !report.program.is_empty() && !self.programs.contains(&report.program) {
            self.programs.push(report.program.clone());
        }
        self.times += 1;
        if report.is_leak() {
            let mut lost = self.lost();
            lost.add(report.lost);
            (self.objects, self.bytes) = (lost.objects, lost.bytes);
            (self.held_objects, self.held_bytes) = (lost.held_objects, lost.held_bytes);
            self.message = format!("nothing leads to {}", lost.text());
        }
    }

    pub fn is_leak(&self) -> bool {
        self.kind == "leak"
    }

    pub fn is_suppressed(&self) -> bool {
        self.suppressed_by.is_some()
    }

    fn lost(&self) -> Lost {
        let Self { objects, bytes, held_objects, held_bytes, .. } = *self;
        Lost { objects, bytes, held_objects, held_bytes }
    }

    /// The stack with the place, then the others.
    pub fn stacks(&self) -> impl Iterator<Item = (Role, &[Call])> {
        let others = Role::ALL.into_iter().filter(|role| *role != self.main);
        let all = [self.main].into_iter().chain(others);
        all.filter_map(|role| Some((role, self.stacks.get(role.name())?.as_slice())))
    }

    /// The call to show: the place, or else the innermost one of the first stack.
    pub fn shown(&self) -> Option<&Call> {
        let inner = || self.stacks().find_map(|(_, calls)| first(calls));
        self.place.as_ref().or_else(inner)
    }

    /// The program or library of the innermost call that has one.
    pub fn module(&self) -> &str {
        let mut calls = self.stacks().flat_map(|(_, calls)| calls);
        calls.find(|call| !call.module.is_empty()).map_or("unknown", |call| call.module.as_str())
    }

    /// The same for the same bug, also when lines have moved: the kind and the functions' names.
    pub fn fingerprint(&self) -> u64 {
        const NAMES: usize = 8;
        let calls = self.stacks().next().map_or(&[][..], |(_, calls)| calls);
        let names = calls.iter().filter(|call| !call.is_of_language()).take(NAMES).map(|call| call.function.as_str());
        let all = [self.kind.as_str()].into_iter().chain(names);
        // FNV-1a.
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        all.fold(0xcbf2_9ce4_8422_2325, |hash, name| name.bytes().chain([0]).fold(hash, step))
    }
}

/// The innermost call with a line, or else the innermost one, outside of the language's library.
pub fn first(calls: &[Call]) -> Option<&Call> {
    let mut own = calls.iter().filter(|call| !call.is_of_language());
    own.clone().find(|call| call.line.is_some()).or_else(|| own.next())
}

/// Without `.` and `..`, which compilers leave in paths.
fn normal(path: &str) -> String {
    let mut whole = PathBuf::new();
    for part in Path::new(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if whole.file_name().is_some() => _ = whole.pop(),
            part => whole.push(part),
        }
    }
    whole.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests;
