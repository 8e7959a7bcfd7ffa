//! Memory on hugepages, which the kernel gives no peak of: sampled.
//!
//! **What.** [`anon_huge_bytes`] adds up what the descendants of a process have now. **Units.** Bytes.
//! **Failure.** A process that ends meanwhile, or that belongs to another user, counts as 0.
//! **Cost.** The kernel walks the processes' page tables: the caller spaces samples by what they take.

use crate::machine;
use std::fs;

/// Anonymous memory on hugepages in all descendants of process `of`, itself not included.
pub fn anon_huge_bytes(of: u32) -> u64 {
    let mut sum = 0;
    let mut todo = children(of);
    while let Some(pid) = todo.pop() {
        let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
        sum += machine::value(&rollup, "AnonHugePages").and_then(machine::bytes).unwrap_or(0);
        todo.extend(children(pid));
    }
    sum
}

/// The children of all threads of a process.
fn children(pid: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let of_thread = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("children")).unwrap_or_default();
    let parse = |list: String| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>();
    threads.flatten().map(of_thread).flat_map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn children_are_found_whichever_thread_made_them() {
        let mut child = std::thread::scope(|scope| {
            let start = || Command::new("sleep").arg("1000").spawn().expect("sleep starts");
            scope.spawn(start).join().expect("the thread ends")
        });
        let found = children(std::process::id());
        let sum = anon_huge_bytes(std::process::id());
        child.kill().expect("the child is there");
        child.wait().expect("the child ends");
        assert!(found.contains(&child.id()), "{} is not in {found:?}", child.id());
        assert_eq!(sum % 4096, 0);
    }
}
