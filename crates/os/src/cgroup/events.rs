//! The events so far of the tightest memory limit of the process's groups, which its children
//! share.

use super::UNLIMITED_BYTES;
use super::place::{Kind, Place};
use crate::small_file::{PathText, read_start};
use craton_tables::amount::decimal;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events {
    pub limit_bytes: Option<u64>,
    pub reached: u64,
    /// Processes that the system killed for it.
    pub kills: u64,
}

impl Events {
    pub fn now() -> Self {
        Self::under(b"")
    }

    pub(super) fn under(root: &[u8]) -> Self {
        let mut tightest = Self::default();
        for (kind, limit, reached, kills) in [
            (Kind::V2, "memory.max", ("memory.events", "max"), "memory.events"),
            (Kind::V1Memory, "memory.limit_in_bytes", ("memory.failcnt", ""), "memory.oom_control"),
        ] {
            let Ok(Some(place)) = Place::find(root, kind) else { continue };
            place.walk_up(|dir| {
                let own = number(dir, limit, "").filter(|bytes| *bytes < UNLIMITED_BYTES);
                if own.is_some_and(|own| tightest.limit_bytes.is_none_or(|least| own < least)) {
                    tightest.limit_bytes = own;
                    tightest.reached = number(dir, reached.0, reached.1).unwrap_or(0);
                    tightest.kills = number(dir, kills, "oom_kill").unwrap_or(0);
                }
            });
        }
        tightest
    }

    pub fn since(self, before: Self) -> Self {
        let Self { limit_bytes, reached, kills } = self;
        Self { limit_bytes, reached: reached.saturating_sub(before.reached), kills: kills.saturating_sub(before.kills) }
    }
}

/// Behind `key` and a space on a separate line; with an empty key the whole file.
fn number(dir: &mut PathText, file: &str, key: &str) -> Option<u64> {
    let len = dir.as_bytes().len();
    let mut buffer = [0; 512];
    let fits = dir.push(b"/") && dir.push(file.as_bytes());
    let text = if fits { read_start(dir, &mut buffer).ok() } else { None };
    dir.truncate(len);
    let mut lines = text?.split(|byte| *byte == b'\n');
    match key {
        "" => decimal(lines.next()?),
        key => lines.find_map(|line| decimal(line.strip_prefix(key.as_bytes())?.strip_prefix(b" ")?)),
    }
}
