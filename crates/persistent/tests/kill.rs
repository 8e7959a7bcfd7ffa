//! `kill -9` of a process that changes a heap leaves each operation whole, or not begun.

use craton_persistent::{Error, HeapOptions, PPtr, PersistentHeap, Slot, persist};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

persist! {
    struct Node { next: PPtr<Node>, value: u64 }
}

/// Set for the process that will be killed.
const FILE: &str = "CRATON_TEST_HEAP";
const KILLS: u64 = 12;
const NAME: &str = "kill::a_killed_process_leaves_whole_operations";

fn expected(count: u64) -> Vec<u64> {
    let mut list = Vec::new();
    for i in 0..count {
        if i % 3 == 2 {
            list.pop();
        } else {
            list.push(i);
        }
    }
    list.reverse();
    list
}

fn values(heap: &PersistentHeap, list: Slot<Node>) -> Result<Vec<u64>, Error> {
    let (mut found, mut at) = (Vec::new(), heap.get(list)?);
    while !at.is_null() {
        let node = heap.get(at)?;
        found.push(node.value);
        at = node.next;
    }
    Ok(found)
}

/// One list changes by single calls, the other by transactions that count.
fn change(path: &Path) -> Result<(), Error> {
    let (heap, _) = HeapOptions::new().limit(1 << 30).open_or_create(path)?;
    let (single, counted): (Slot<Node>, Slot<Node>) = (heap.root_or_add("single")?, heap.root_or_add("counted")?);
    let count: Slot<u64> = heap.root_or_add("count")?;
    if heap.get(count)?.is_null() {
        heap.alloc_to(count, &0)?;
    }
    let count = heap.get(count)?;
    // Single calls may be one operation ahead or, a moment after the last kill, behind.
    let mut done = single_count(&values(&heap, single)?);
    loop {
        let i = heap.get(count)?;
        let first = heap.get(counted)?;
        heap.transaction(|tx| {
            if i % 3 == 2 {
                tx.free_and_link(counted, heap.get(first)?.next);
            } else {
                tx.alloc_to(counted, &Node { next: first, value: i })?;
            }
            tx.set(count, &(i + 1))
        })?;
        let first = heap.get(single)?;
        if done % 3 == 2 {
            heap.free_and_link(single, heap.get(first)?.next)?;
        } else {
            heap.alloc_to(single, &Node { next: first, value: done })?;
        }
        done += 1;
        println!("done {} {done}", i + 1);
    }
}

fn single_count(values: &[u64]) -> u64 {
    // 3k operations leave k nodes; then two push.
    let len = values.len() as u64;
    let possible = [3 * len, (3 * len).saturating_sub(2), (3 * len).saturating_sub(4)];
    let found = possible.into_iter().find(|count| expected(*count) == values);
    found.unwrap_or_else(|| panic!("no operations leave {values:?}"))
}

#[test]
fn a_killed_process_leaves_whole_operations() {
    if let Some(path) = std::env::var_os(FILE) {
        change(Path::new(&path)).expect("operations");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("list.heap");
    let mut total = 0;
    for round in 0..KILLS {
        let program = std::env::current_exe().expect("this program");
        let mut child = Command::new(program)
            .args(["--exact", NAME, "--nocapture"])
            .env(FILE, &path)
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program starts again");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
        let is_done = |line: &String| line.starts_with("done ");
        let begun = lines.by_ref().find(is_done).expect("an operation");
        std::thread::sleep(Duration::from_millis(3 * round));
        child.kill().expect("a kill");
        child.wait().expect("its end");
        // The last line may be cut.
        let last = lines.filter(|line| is_done(line) && line.split(' ').count() == 3).last().unwrap_or(begun);
        let acknowledged: u64 = last.split(' ').nth(1).and_then(|n| n.parse().ok()).expect("a number");

        let (heap, report) = HeapOptions::new().limit(1 << 30).open(&path).expect("the heap opens");
        assert!(!report.clean);
        heap.check().expect("the heap is whole");
        let count = heap.get(heap.get(heap.root::<u64>("count").expect("a root")).expect("a count")).expect("a count");
        assert!(count >= acknowledged, "{count} transactions of {acknowledged}");
        let counted = values(&heap, heap.root("counted").expect("a root")).expect("a list");
        assert_eq!(counted, expected(count), "after {count} transactions");
        let single = values(&heap, heap.root("single").expect("a root")).expect("a list");
        single_count(&single);
        // Nodes of both lists, and the count.
        assert_eq!(heap.stats().small, (counted.len() + single.len() + 1) as u64);
        total = count;
    }
    assert!(total >= KILLS, "{total} operations");
}
