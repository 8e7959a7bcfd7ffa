use super::*;
use std::boxed::Box;
use std::fs;
use std::path::Path;
use std::string::String;
use std::vec::Vec;

fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let name = |entry: fs::DirEntry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap());
    fs::read_dir(folder).unwrap().map(|entry| name(entry.unwrap())).collect()
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

#[test]
fn the_file_counts_along_and_goes_at_exit() {
    let folder = std::env::temp_dir().join(std::format!("craton-shared-{}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    let segment: &'static Segment = Box::leak(Box::new(Segment::new()));
    let shared = Shared::new();
    assert!(!shared.wants_copy(u64::MAX - 1));
    segment.pid.store(process::id().into(), Relaxed);
    assert!(shared.set(folder.to_str().unwrap().as_bytes()));
    shared.start(segment);
    assert!(shared.is_shared() && shared.wants_copy(0));
    assert!(shared.set(folder.to_str().unwrap().as_bytes()) && !shared.set(b"/tmp"), "the folder changed");
    segment.refills.store(7, Relaxed);
    segment.rest.publish(2, 32, 8192, 1, 5);
    let before = files(&folder);
    let (name, bytes) = &before[0];
    assert!(name.starts_with(&std::format!("{}-", process::id())) && name.ends_with(".stats"), "{name}");
    assert_eq!((word(bytes, 24), word(bytes, 1024 + 8)), (7, 1));
    // Behind six words: the second class's sizes.
    assert_eq!(word(bytes, 1024 + 48 + 16), 32 | 8192 << 32);

    let wants = |now_ns, live| shared.wants_profile(now_ns, || live);
    assert!(!wants(9, PROFILED - 1) && wants(10, PROFILED) && !wants(10, 3 * PROFILED - 1) && wants(11, 3 * PROFILED));
    let second = 11 + SECOND_NS;
    assert!(!wants(second - 1, PROFILED) && !wants(second, 3 * PROFILED + PROFILED / 4) && wants(second, 2 * PROFILED));
    assert!(!wants(second + 59 * SECOND_NS, 2 * PROFILED) && wants(second + 60 * SECOND_NS, 2 * PROFILED));

    // As in a child.
    shared.forked(segment, false);
    segment.refills.store(8, Relaxed);
    assert_eq!((word(&files(&folder)[0].1, 24), files(&folder).len()), (7, 1));
    assert!(shared.wants_copy(0) && shared.is_shared_or_begins(segment));
    assert!(wants(1, PROFILED), "a child's copy is another");
    let path = shared.profile_path(segment);
    let path = path.split(|byte| *byte == 0).next().unwrap();
    fs::write(std::str::from_utf8(path).unwrap(), "").unwrap();
    assert_eq!(files(&folder).len(), 3);
    shared.end(segment);
    assert_eq!(files(&folder), before);
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn only_a_folder_that_craton_run_made_and_removed_needs_no_line() {
    let gone = |path: &[u8]| is_of_ended_run(path, file_map::NO_FOLDER);
    assert!(gone(b"/tmp/craton-run-aB3x/stats") && gone(b"/tmp/craton-run-aB3x"));
    assert!(!gone(b"/tmp/other/stats") && !gone(b"/tmp/my-craton-run-x/stats"));
    assert!(!is_of_ended_run(b"/tmp/craton-run-aB3x/stats", file_map::IN_USE));
}
