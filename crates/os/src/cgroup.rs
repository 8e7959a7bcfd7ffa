//! What a control group allows the process: processors and memory.
//!
//! **What.** [`limits`] walks from the process's group to the top of the hierarchy, in version 2, version 1 or both, and takes the
//! tightest of what it finds. [`pressure`] is how short of memory the system or the group is.
//!
//! **Units.** Bytes; thousandths of a processor; hundredths of a percent of time.
//!
//! **Failure.** What is missing or cannot be read is no limit. A file that reads as nonsense is no limit either, and one
//! line says so, handed to the caller.
//!
//! **Cost.** Some 10 system calls and three for each file on the way up; about 6 KiB of stack.

mod place;

use crate::decimal::Decimal;
use crate::line::Line;
use crate::small_file::{PathText, read_start};
use place::{Kind, Place};

/// What the control groups of the process allow.
#[derive(Default)]
pub struct Limits {
    /// Memory in bytes: the tightest of `memory.max`, `memory.high` and `memory.limit_in_bytes`.
    pub memory_bytes: Option<u64>,
    /// Time of processors in thousandths of one, rounded up and at least 1.
    pub cpu_thousandths: Option<u64>,
    /// A file that made no sense, in words.
    pub odd: Option<Line>,
}

/// Limits from here on are none: the kernel writes 2⁶³ less a page.
const UNLIMITED_BYTES: u64 = 1 << 60;

/// The limits of the process, as they are now.
pub fn limits() -> Limits {
    limits_under(b"")
}

/// As [`limits`], by the files below another root.
pub fn limits_under(root: &[u8]) -> Limits {
    let mut limits = Limits::default();
    if let Some(place) = Place::find(root, Kind::V2) {
        place.walk_up(|dir| {
            limits.take_memory(dir, b"/memory.max");
            limits.take_memory(dir, b"/memory.high");
            limits.take_quota(dir);
        });
    }
    if let Some(place) = Place::find(root, Kind::V1Memory) {
        place.walk_up(|dir| limits.take_memory(dir, b"/memory.limit_in_bytes"));
    }
    if let Some(place) = Place::find(root, Kind::V1Cpu) {
        place.walk_up(|dir| limits.take_quota_and_period(dir));
    }
    limits
}

impl Limits {
    fn take_memory(&mut self, dir: &mut PathText, file: &[u8]) {
        let limit = self.read(dir, file, |text| match text {
            b"max" => Some(None),
            // The kernel's own "no limit" of version 1 is a large number that depends on the size of a page.
            number => Decimal::parse(number).map(|bytes| (bytes < UNLIMITED_BYTES).then_some(bytes)),
        });
        tighten(&mut self.memory_bytes, limit);
    }

    fn take_quota(&mut self, dir: &mut PathText) {
        let limit = self.read(dir, b"/cpu.max", |text| {
            let space = text.iter().position(|b| *b == b' ')?;
            let period = Decimal::parse(&text[space + 1..])?;
            match &text[..space] {
                b"max" => Some(None),
                quota => thousandths(Decimal::parse(quota)?, period).map(Some),
            }
        });
        tighten(&mut self.cpu_thousandths, limit);
    }

    fn take_quota_and_period(&mut self, dir: &mut PathText) {
        let quota = self.read(dir, b"/cpu.cfs_quota_us", |text| match text {
            b"-1" => Some(None),
            number => Decimal::parse(number).filter(|n| *n > 0).map(Some),
        });
        if let Some(quota) = quota {
            let period = |text: &[u8]| thousandths(quota, Decimal::parse(text)?).map(Some);
            let limit = self.read(dir, b"/cpu.cfs_period_us", period);
            tighten(&mut self.cpu_thousandths, limit);
        }
    }

    /// One file's value: `None` when it is missing or says that there is no limit, and when it makes no sense: the first such file is
    /// kept in `odd`.
    fn read(
        &mut self,
        dir: &mut PathText,
        file: &[u8],
        parse: impl FnOnce(&[u8]) -> Option<Option<u64>>,
    ) -> Option<u64> {
        let len = dir.as_bytes().len();
        let mut buffer = [0; 64];
        let text = dir.push(file).then(|| read_start(dir, &mut buffer)).flatten();
        let limit = text.and_then(|text| {
            let text = text.strip_suffix(b"\n").unwrap_or(text);
            parse(text).unwrap_or_else(|| {
                self.note_odd(dir, text);
                None
            })
        });
        dir.truncate(len);
        limit
    }

    #[cold]
    fn note_odd(&mut self, path: &PathText, text: &[u8]) {
        self.odd.get_or_insert_with(|| {
            let line = Line::new().text("craton: ").bytes(path.as_bytes()).text(" reads \"").bytes(printable(text));
            line.text("\", which is no limit that this version knows; taken as no limit")
        });
    }
}

fn tighten(limit: &mut Option<u64>, other: Option<u64>) {
    *limit = limit.iter().chain(&other).copied().min();
}

/// The start of a text up to what is not to be printed.
fn printable(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|b| !(b' '..=b'~').contains(b)).unwrap_or(text.len());
    &text[..end]
}

/// A quota of a period in thousandths of a processor.
fn thousandths(quota: u64, period: u64) -> Option<u64> {
    let exact =
        (u128::from(quota) * 1000).checked_next_multiple_of(u128::from(period.max(1)))? / u128::from(period.max(1));
    (quota > 0 && period > 0).then(|| u64::try_from(exact).unwrap_or(u64::MAX))
}

/// How much of the last 10 seconds some thread stood still for want of memory, in hundredths of a percent: of the system or of
/// the process's group, whichever was more. `None` when neither is told.
pub fn pressure() -> Option<u32> {
    pressure_under(b"")
}

/// As [`pressure`], by the files below another root.
pub fn pressure_under(root: &[u8]) -> Option<u32> {
    let mut path = PathText::new(root)?;
    let system = path.push(b"/proc/pressure/memory").then(|| some_avg10(&path)).flatten();
    let group = Place::find(root, Kind::V2).and_then(|mut place| {
        let there = place.dir().push(b"/memory.pressure");
        there.then(|| some_avg10(place.dir())).flatten()
    });
    system.max(group)
}

fn some_avg10(path: &PathText) -> Option<u32> {
    let mut buffer = [0; 64];
    let text = read_start(path, &mut buffer)?.strip_prefix(b"some avg10=")?;
    let end = text.iter().position(|b| *b == b' ')?;
    let point = text[..end].iter().position(|b| *b == b'.')?;
    let (whole, part) = (Decimal::parse(&text[..point])?, Decimal::parse(&text[point + 1..end])?);
    (whole <= 100 && end == point + 3).then_some((whole * 100 + part) as u32)
}

#[cfg(test)]
mod tests;
