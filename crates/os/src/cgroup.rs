//! The control group's limits: the tightest from the process's group to the root, in versions 1 and
//! 2.
//!
//! **Failure.** Missing: no limit. The first odd file also prints a line.
//! **Cost.** 10 system calls and three for each file; about 6 KiB of stack.

mod events;
mod place;

pub use events::Events;

use crate::line::Line;
use crate::small_file::{PathText, Unread, read_start};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use craton_tables::amount::decimal;
use place::{Kind, Place};

#[derive(Default)]
pub struct Limits {
    /// The tightest of `memory.max`, `memory.high` and `memory.limit_in_bytes`.
    pub memory_bytes: Option<u64>,
    /// Rounded up, at least 1.
    pub cpu_thousandths: Option<u64>,
    /// Of the memory limit, real or possible.
    pub memory_source: Source,
    /// A file was unreadable for want of resources: prefer the earlier reading.
    pub is_partial: bool,
    odd: Option<Line>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Source {
    /// No group could limit memory.
    #[default]
    Nowhere,
    V1,
    V2,
}

/// The kernel writes 2⁶³ minus a page.
const UNLIMITED_BYTES: u64 = 1 << 60;

static SAID: AtomicBool = AtomicBool::new(false);

/// Reports the first odd file on standard error.
pub fn limits() -> Limits {
    let mut limits = limits_under(b"");
    say_once(limits.odd.take());
    limits
}

fn say_once(odd: Option<Line>) {
    if let Some(line) = odd
        && !SAID.swap(true, Relaxed)
    {
        line.print();
    }
}

fn limits_under(root: &[u8]) -> Limits {
    let mut limits = Limits::default();
    if let Some(place) = limits.find(root, Kind::V2) {
        limits.memory_source = Source::V2;
        // The top group lacks these files, as do groups without the controller.
        place.walk_up(|dir| {
            limits.read_memory(Source::V2, dir, b"/memory.max");
            limits.read_memory(Source::V2, dir, b"/memory.high");
            limits.read_quota(dir);
        });
    }
    if let Some(place) = limits.find(root, Kind::V1Memory) {
        if limits.memory_bytes.is_none() {
            limits.memory_source = Source::V1;
        }
        let (mut any, mut missing) = (false, None);
        place.walk_up(|dir| match limits.read_memory(Source::V1, dir, b"/memory.limit_in_bytes") {
            Value::Missing => {
                missing = missing.take().or_else(|| Some(said(dir.as_bytes()).text("/memory.limit_in_bytes")))
            }
            _ => any = true,
        });
        if !any && let Some(line) = missing {
            limits.record(line.text(" is missing, which groups of its kind have"));
        }
    }
    if let Some(place) = limits.find(root, Kind::V1Cpu) {
        place.walk_up(|dir| limits.read_quota_and_period(dir));
    }
    limits
}

enum Value {
    Limit(u64),
    Unlimited,
    Missing,
    Odd,
}

impl Limits {
    fn find(&mut self, root: &[u8], kind: Kind) -> Option<Place> {
        Place::find(root, kind).unwrap_or_else(|(file, unread)| {
            self.record_unread(said(file.as_bytes()), unread);
            None
        })
    }

    fn read_memory(&mut self, source: Source, dir: &mut PathText, file: &[u8]) -> Value {
        let value = self.read(dir, file, |text| match text {
            b"max" => Some(Value::Unlimited),
            // Its "no limit" depends on the page size.
            number => Some(match decimal(number)? {
                UNLIMITED_BYTES.. => Value::Unlimited,
                bytes => Value::Limit(bytes),
            }),
        });
        if tighten(&mut self.memory_bytes, &value) {
            self.memory_source = source;
        }
        value
    }

    fn read_quota(&mut self, dir: &mut PathText) {
        let value = self.read(dir, b"/cpu.max", |text| {
            let space = text.iter().position(|b| *b == b' ')?;
            let period = decimal(&text[space + 1..])?;
            match &text[..space] {
                b"max" => Some(Value::Unlimited),
                quota => thousandths(decimal(quota)?, period).map(Value::Limit),
            }
        });
        tighten(&mut self.cpu_thousandths, &value);
    }

    fn read_quota_and_period(&mut self, dir: &mut PathText) {
        let quota = self.read(dir, b"/cpu.cfs_quota_us", |text| match text {
            b"-1" => Some(Value::Unlimited),
            number => decimal(number).filter(|n| *n > 0).map(Value::Limit),
        });
        if let Value::Limit(quota) = quota {
            let file = b"/cpu.cfs_period_us";
            let period = |text: &[u8]| thousandths(quota, decimal(text)?).map(Value::Limit);
            let value = self.read(dir, file, period);
            if matches!(value, Value::Missing) {
                self.record(said(dir.as_bytes()).bytes(file).text(" is missing, but there is a quota"));
            }
            tighten(&mut self.cpu_thousandths, &value);
        }
    }

    fn read(&mut self, dir: &mut PathText, file: &[u8], parse: impl FnOnce(&[u8]) -> Option<Value>) -> Value {
        let len = dir.as_bytes().len();
        if !dir.push(file) {
            return Value::Missing;
        }
        let mut buffer = [0; 64];
        let value = match read_start(dir, &mut buffer) {
            Ok(text) => {
                let text = text.strip_suffix(b"\n").unwrap_or(text);
                parse(text).unwrap_or_else(|| {
                    self.record_odd(dir, text);
                    Value::Odd
                })
            }
            Err(unread) if unread.is_missing() => Value::Missing,
            Err(unread) => {
                self.record_unread(said(dir.as_bytes()), unread);
                Value::Odd
            }
        };
        dir.truncate(len);
        value
    }

    #[cold]
    fn record_odd(&mut self, path: &PathText, text: &[u8]) {
        let line = said(path.as_bytes()).text(" reads \"").bytes(printable(text));
        self.record(line.text("\", which is no limit that this version knows"));
    }

    #[cold]
    fn record_unread(&mut self, path: Line, unread: Unread) {
        self.is_partial |= unread.passes();
        let line = path.text(" cannot be read (errno ").number(unread.0 as u64).text(")");
        if unread.passes() {
            self.odd.get_or_insert_with(|| line.text("; what was read before counts, if anything was"));
        } else {
            self.record(line);
        }
    }

    #[cold]
    fn record(&mut self, line: Line) {
        self.odd.get_or_insert_with(|| line.text("; taken as no limit"));
    }
}

fn said(path: &[u8]) -> Line {
    Line::new().text("craton: ").bytes(path)
}

fn tighten(limit: &mut Option<u64>, value: &Value) -> bool {
    match *value {
        Value::Limit(new) if limit.is_none_or(|old| new < old) => {
            *limit = Some(new);
            true
        }
        _ => false,
    }
}

fn printable(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|b| !(b' '..=b'~').contains(b)).unwrap_or(text.len());
    &text[..end]
}

fn thousandths(quota: u64, period: u64) -> Option<u64> {
    let exact =
        (u128::from(quota) * 1000).checked_next_multiple_of(u128::from(period.max(1)))? / u128::from(period.max(1));
    (quota > 0 && period > 0).then(|| u64::try_from(exact).unwrap_or(u64::MAX))
}

/// Stalls on memory in the last 10 s, in hundredths of a percent: the larger of system and group.
pub fn pressure() -> Option<u32> {
    let (pressure, odd) = pressure_under(b"");
    say_once(odd);
    pressure
}

fn pressure_under(root: &[u8]) -> (Option<u32>, Option<Line>) {
    let mut odd = None;
    let Some(mut path) = PathText::new(root) else { return (None, odd) };
    let system = if path.push(b"/proc/pressure/memory") { some_avg10(&path, &mut odd) } else { None };
    let group = Place::find(root, Kind::V2).ok().flatten().and_then(|mut place| {
        let there = place.dir().push(b"/memory.pressure");
        there.then(|| some_avg10(place.dir(), &mut odd)).flatten()
    });
    (system.max(group), odd)
}

/// Systems that do not measure it lack the file or cannot open it.
fn some_avg10(path: &PathText, odd: &mut Option<Line>) -> Option<u32> {
    let mut buffer = [0; 64];
    match read_start(path, &mut buffer) {
        Ok(text) => {
            let pressure = parse_avg10(text);
            if pressure.is_none() {
                odd.get_or_insert_with(|| {
                    let line = said(path.as_bytes()).text(" reads \"").bytes(printable(text));
                    line.text("\", which is no pressure that this version knows; not looked at")
                });
            }
            pressure
        }
        Err(unread) => unread.passes().then_some(0),
    }
}

fn parse_avg10(text: &[u8]) -> Option<u32> {
    let text = text.strip_prefix(b"some avg10=")?;
    let end = text.iter().position(|b| *b == b' ')?;
    let point = text[..end].iter().position(|b| *b == b'.')?;
    let (whole, part) = (decimal(&text[..point])?, decimal(&text[point + 1..end])?);
    (whole <= 100 && end == point + 3).then_some((whole * 100 + part) as u32)
}

#[cfg(test)]
mod tests;
