//! A system without free hugepages: pages of pipes, which the kernel cannot move, fill free memory,
//! and every other one is freed. Requires root.
//!
//! **Unsafe.** Sets the size of a pipe and the limit of open files.

use std::fs;
use std::io::{PipeReader, PipeWriter, Write, pipe};
use std::os::fd::AsRawFd;

/// The kernel's default maximum.
const PIPE: usize = 1 << 20;
const PAGE: usize = 4096;
/// For everything else.
const LEAVE: u64 = 400 << 20;
const HUGE_ORDER: usize = 9;

pub struct Fragments {
    kept: Vec<PipeReader>,
}

impl Fragments {
    /// All free memory, or `most` bytes.
    pub fn new(most: u64) -> Result<Self, String> {
        raise_limit();
        let (mut kept, mut gone) = (Vec::new(), Vec::new());
        while free_bytes()? > LEAVE && ((kept.len() * 2 * PIPE) as u64) < most {
            let failed = |e| format!("cannot fill memory with pipes, of which {} hold 1 MiB each: {e}", 2 * kept.len());
            let (stays, goes) = filled_pair().map_err(failed)?;
            kept.push(stays);
            gone.push(goes);
        }
        Ok(Self { kept })
    }

    pub fn bytes(&self) -> u64 {
        (self.kept.len() * PIPE) as u64
    }
}

/// Their pages take turns in memory.
fn filled_pair() -> std::io::Result<(PipeReader, PipeReader)> {
    let (stays, mut a) = full_sized()?;
    let (goes, mut b) = full_sized()?;
    for _ in 0..PIPE / PAGE {
        a.write_all(&[1; PAGE])?;
        b.write_all(&[1; PAGE])?;
    }
    Ok((stays, goes))
}

fn full_sized() -> std::io::Result<(PipeReader, PipeWriter)> {
    let (reader, writer) = pipe()?;
    // SAFETY: an open descriptor.
    let size = unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_SETPIPE_SZ, PIPE) };
    if size < PIPE as i32 { Err(std::io::Error::last_os_error()) } else { Ok((reader, writer)) }
}

fn raise_limit() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a structure of ours.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
}

fn free_bytes() -> Result<u64, String> {
    let text = fs::read_to_string("/proc/meminfo").map_err(|e| format!("/proc/meminfo: {e}"))?;
    let kib = text.lines().find_map(|line| line.strip_prefix("MemFree:")?.trim().strip_suffix(" kB")?.parse().ok());
    kib.map(|kib: u64| kib << 10).ok_or_else(|| "/proc/meminfo does not tell MemFree".to_owned())
}

pub fn free_hugepages() -> Result<u64, String> {
    let text = fs::read_to_string("/proc/buddyinfo").map_err(|e| format!("/proc/buddyinfo: {e}"))?;
    Ok(text.lines().map(hugepages_of_zone).sum())
}

/// `Node 0, zone Normal 12 3 …`, by order.
fn hugepages_of_zone(line: &str) -> u64 {
    let blocks = line.split_whitespace().skip(4).map(|n| n.parse().unwrap_or(0));
    blocks.enumerate().skip(HUGE_ORDER).map(|(order, blocks): (_, u64)| blocks << (order - HUGE_ORDER)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_other_page_of_what_was_filled_stays() {
        match Fragments::new(8 << 20) {
            Ok(all) => assert_eq!((all.bytes(), all.kept.len()), (4 << 20, 4)),
            // A user has 16,384 pages for pipes.
            Err(why) => assert!(why.contains("pipes"), "{why}"),
        }
    }

    #[test]
    fn free_hugepages_are_blocks_of_two_mebibytes_and_more() {
        assert_eq!(
            hugepages_of_zone("Node 0, zone   Normal  25698  13482 1 1 1 1 1 1 407  771   1068"),
            771 + 2 * 1068
        );
        assert_eq!(hugepages_of_zone("Node 0, zone   Normal  25698  13482"), 0);
        assert!(free_hugepages().is_ok());
    }
}
