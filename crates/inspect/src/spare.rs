//! Memory that this program can take without the system or its control group running short.

use std::fs;
use std::path::{Path, PathBuf};

/// Version 1 writes 2⁶³ minus a page.
const UNLIMITED: u64 = 1 << 60;

/// Three quarters of what is available; 0 where the system does not say.
pub fn spare_bytes() -> u64 {
    let info = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let available = available(&info).min(left_in_groups(&groups, Path::new("/sys/fs/cgroup")));
    available / 4 * 3
}

fn available(info: &str) -> u64 {
    let line = info.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok()).map_or(0, |kib| kib << 10)
}

/// Of the tightest control group up to the root.
fn left_in_groups(groups: &str, mount: &Path) -> u64 {
    let place = |line: &str| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (kinds, path) = (parts.next()?, PathBuf::from(parts.next()?.trim_start_matches('/')));
        match kinds {
            "" => Some((mount.to_owned(), path, ["memory.max", "memory.current"])),
            kinds if kinds.split(',').any(|kind| kind == "memory") => {
                Some((mount.join("memory"), path, ["memory.limit_in_bytes", "memory.usage_in_bytes"]))
            }
            _ => None,
        }
    };
    let number = |file: PathBuf| fs::read_to_string(file).ok()?.trim().parse::<u64>().ok();
    let all = groups.lines().filter_map(place).flat_map(|(top, path, files)| {
        let folders: Vec<PathBuf> = path.ancestors().map(|part| top.join(part)).collect();
        folders.into_iter().filter_map(move |folder| {
            let limit = number(folder.join(files[0])).filter(|limit| *limit < UNLIMITED)?;
            // Files' pages make room when memory is needed.
            let text = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
            let cached = text.lines().find_map(|line| line.strip_prefix("inactive_file ")?.parse::<u64>().ok());
            let used = number(folder.join(files[1]))?.saturating_sub(cached.unwrap_or(0));
            Some(limit.saturating_sub(used))
        })
    });
    all.min().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
