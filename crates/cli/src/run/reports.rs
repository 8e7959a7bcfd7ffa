//! The debugging kit's reports, as processes append them to `debug_file`.
//!
//! **What.** The text is the one on standard error (`craton_kit`'s `report.rs`): a headline, lines
//! about the buffer, stacks. A line with process and program precedes it, since programs that a
//! process runs one after another by `exec` share the file. A report of a process that was killed
//! meanwhile ends early.

use craton_lab::format::count;

/// A stack's part in a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    Allocated,
    Freed,
    Found,
}

impl Role {
    pub const ALL: [Self; 3] = [Self::Allocated, Self::Freed, Self::Found];

    pub fn name(self) -> &'static str {
        match self {
            Self::Allocated => "allocated",
            Self::Freed => "freed",
            Self::Found => "found",
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawFrame {
    pub address: u64,
    /// As in the file, perhaps mangled.
    pub symbol: Option<String>,
    /// The file and the return address in its numbering.
    pub place: Option<(String, u64)>,
}

/// Buffers that a process lost at one place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    pub objects: u64,
    pub bytes: u64,
    /// That hang on them.
    pub held_objects: u64,
    pub held_bytes: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub pid: u32,
    pub program: String,
    pub kind: String,
    pub message: String,
    pub details: Vec<String>,
    /// Of the buffer.
    pub bytes: Option<u64>,
    pub lost: Lost,
    pub stacks: Vec<(Role, Vec<RawFrame>)>,
}

/// A program's reports in a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reports {
    pub program: String,
    pub all: Vec<Report>,
    /// Buffers that the process lost, also those that have no report.
    pub lost_objects: u64,
}

/// By program, in their order.
pub fn parse(pid: u32, text: &str) -> Vec<Reports> {
    let mut programs: Vec<Reports> = Vec::new();
    let (mut at, mut is_open) = (0, false);
    for line in text.lines().filter_map(|line| line.strip_prefix("craton: ")) {
        let program = program(line);
        if let Some(name) = program.or(programs.is_empty().then_some("")) {
            at = programs.iter().position(|known| known.program == name).unwrap_or(programs.len());
            if at == programs.len() {
                programs.push(Reports { program: name.to_owned(), ..Reports::default() });
            }
        }
        let found = &mut programs[at];
        if program.is_some() {
            is_open = false;
        } else if let Some((kind, message)) = line.strip_prefix("BUG ").and_then(|rest| rest.split_once(": ")) {
            let (kind, message, program) = (kind.to_owned(), message.to_owned(), found.program.clone());
            found.all.push(Report { pid, program, kind, message, ..Report::default() });
            is_open = true;
        } else if let (Some(detail), true) = (line.strip_prefix("  "), is_open) {
            found.all.last_mut().into_iter().for_each(|report| report.add(detail));
        } else {
            is_open = false;
            if let Some(rest) = line.strip_prefix("leaks: ") {
                found.lost_objects += first_number(rest).unwrap_or(0);
            }
        }
    }
    programs.iter_mut().flat_map(|found| &mut found.all).for_each(Report::count_lost);
    programs
}

/// `reports of process 12 (sh)`.
fn program(line: &str) -> Option<&str> {
    let (pid, name) = line.strip_prefix("reports of process ")?.split_once(" (")?;
    pid.parse::<u32>().ok()?;
    name.strip_suffix(')')
}

impl Report {
    pub fn is_leak(&self) -> bool {
        self.kind == "leak"
    }

    fn add(&mut self, detail: &str) {
        let role = |(role, start): (Role, &str)| detail.starts_with(start).then_some(role);
        let starts =
            [(Role::Allocated, "allocated by "), (Role::Freed, "freed by "), (Role::Found, "found by thread ")];
        if let Some(role) = starts.into_iter().find_map(role) {
            self.stacks.push((role, Vec::new()));
        } else if let Some((number, frame)) = detail.strip_prefix("  #").and_then(|rest| rest.split_once(' '))
            && number.bytes().all(|byte| byte.is_ascii_digit())
        {
            let frame = RawFrame::parse(frame);
            self.stacks.last_mut().into_iter().for_each(|(_, frames)| frames.extend(frame.clone()));
        } else if !detail.starts_with(' ') {
            if let Some(buffer) = detail.strip_prefix("buffer ") {
                self.bytes = buffer.split_once(" of ").and_then(|(_, rest)| first_number(rest));
            }
            self.details.push(detail.to_owned());
        }
    }

    fn count_lost(&mut self) {
        if !self.is_leak() {
            return;
        }
        let behind = |start: &str| self.message.split_once(start).map(|(_, rest)| rest);
        let more = behind(" and to ").and_then(first_number);
        let all = behind(" allocated there, ").and_then(first_number);
        let held = behind("; ").and_then(|rest| Some((first_number(rest)?, first_number(rest.split_once(" of ")?.1)?)));
        let (held_objects, held_bytes) = held.unwrap_or_default();
        self.lost =
            Lost { objects: 1 + more.unwrap_or(0), bytes: all.or(self.bytes).unwrap_or(0), held_objects, held_bytes };
    }
}

impl RawFrame {
    /// `0x55d0c0de1139 main+0x1d (/path/prog+0x1139)`, without what is unknown.
    fn parse(text: &str) -> Option<Self> {
        let (address, rest) = text.split_once(' ').unwrap_or((text, ""));
        let address = hexadecimal(address)?;
        let (symbol, place) = match rest.strip_prefix('(') {
            Some(place) => (None, Some(place)),
            None => rest.split_once(" (").map_or((None, None), |(symbol, place)| (Some(symbol), Some(place))),
        };
        let symbol = symbol.map(|symbol| symbol.rsplit_once('+').map_or(symbol, |(name, _)| name).to_owned());
        let place = place.and_then(|place| place.strip_suffix(')')?.rsplit_once('+'));
        let place = place.and_then(|(path, at)| Some((path.to_owned(), hexadecimal(at)?)));
        Some(Self { address, symbol, place })
    }
}

impl Lost {
    pub fn add(&mut self, other: Self) {
        self.objects += other.objects;
        self.bytes += other.bytes;
        self.held_objects += other.held_objects;
        self.held_bytes += other.held_bytes;
    }

    /// `3 buffers of 72 bytes; 1 buffer of 10 bytes hangs on them`.
    pub fn text(&self) -> String {
        let some = |n: u64, bytes: u64| {
            let (buffers, unit) =
                (if n == 1 { "buffer" } else { "buffers" }, if bytes == 1 { "byte" } else { "bytes" });
            format!("{} {buffers} of {} {unit}", count(n), count(bytes))
        };
        let own = some(self.objects, self.bytes);
        let hang = if self.held_objects == 1 { "hangs" } else { "hang" };
        let on = if self.objects == 1 { "it" } else { "them" };
        match self.held_objects {
            0 => own,
            n => format!("{own}; {} {hang} on {on}", some(n, self.held_bytes)),
        }
    }
}

fn hexadecimal(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

fn first_number(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().ok()
}

#[cfg(test)]
mod tests;
