//! The memory limit of the tightest control group from ours, which a started program shares, up to
//! the root.

use std::fs;
use std::path::{Path, PathBuf};

/// Version 1 writes 2⁶³ minus a page.
const UNLIMITED: u64 = 1 << 60;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Group {
    pub limit_bytes: Option<u64>,
    pub reached: u64,
    /// Processes that the system killed for it.
    pub kills: u64,
}

impl Group {
    pub fn ours() -> Self {
        let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        Self::of(&text, Path::new("/sys/fs/cgroup"))
    }

    fn of(groups: &str, mount: &Path) -> Self {
        let place = |line: &str| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (kinds, path) = (parts.next()?, parts.next()?);
            let path = PathBuf::from(path.trim_start_matches('/'));
            match kinds {
                "" => Some((mount.to_owned(), path, true)),
                kinds if kinds.split(',').any(|kind| kind == "memory") => Some((mount.join("memory"), path, false)),
                _ => None,
            }
        };
        let all = groups.lines().filter_map(place);
        let found = all.flat_map(|(top, path, is_v2)| {
            let up: Vec<PathBuf> = path.ancestors().map(|part| top.join(part)).collect();
            up.into_iter().filter_map(move |folder| if is_v2 { Self::v2(&folder) } else { Self::v1(&folder) })
        });
        found.min_by_key(|group| group.limit_bytes.unwrap_or(u64::MAX)).unwrap_or_default()
    }

    fn v2(folder: &Path) -> Option<Self> {
        let limit_bytes = number(&folder.join("memory.max"));
        let events = folder.join("memory.events");
        limit_bytes.map(|_| Self { limit_bytes, reached: keyed(&events, "max"), kills: keyed(&events, "oom_kill") })
    }

    fn v1(folder: &Path) -> Option<Self> {
        let limit_bytes = number(&folder.join("memory.limit_in_bytes")).filter(|limit| *limit < UNLIMITED);
        let reached = number(&folder.join("memory.failcnt")).unwrap_or(0);
        limit_bytes.map(|_| Self { limit_bytes, reached, kills: keyed(&folder.join("memory.oom_control"), "oom_kill") })
    }

    pub fn since(self, before: Self) -> Self {
        let Self { limit_bytes, reached, kills } = self;
        Self { limit_bytes, reached: reached.saturating_sub(before.reached), kills: kills.saturating_sub(before.kills) }
    }
}

fn number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

fn keyed(file: &Path, key: &str) -> u64 {
    let text = fs::read_to_string(file).unwrap_or_default();
    let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok());
    value.unwrap_or(0)
}

#[cfg(test)]
mod tests;
