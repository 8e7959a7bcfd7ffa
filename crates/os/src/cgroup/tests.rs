extern crate std;
use super::*;
use crate::tests::Tree;
use std::format;
use std::string::String;

const V2_MOUNT: &str = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
const V1_MOUNTS: &str = "25 20 0:20 / /proc rw - proc proc rw\n\
                         35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
                         32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n";
const V1_GROUPS: &str = "9:name=systemd:/sys\n5:cpu,cpuacct:/a/b\n4:memory:/a\n";

fn v2(group: &str) -> Tree {
    let tree = Tree::new();
    tree.file("proc/self/cgroup", &format!("0::{group}\n")).file("proc/self/mountinfo", V2_MOUNT);
    tree
}

fn v1() -> Tree {
    let tree = Tree::new();
    tree.file("proc/self/cgroup", V1_GROUPS).file("proc/self/mountinfo", V1_MOUNTS);
    tree
}

fn found(tree: &Tree) -> (Option<u64>, Option<u64>) {
    let Limits { memory_bytes, cpu_thousandths, odd, .. } = limits_under(tree.root());
    assert_eq!(odd.map(text), None);
    (memory_bytes, cpu_thousandths)
}

fn text(line: Line) -> String {
    String::from_utf8(line.as_bytes().to_vec()).unwrap()
}

fn said(tree: &Tree) -> String {
    let Limits { memory_bytes, cpu_thousandths, odd, .. } = limits_under(tree.root());
    assert_eq!((memory_bytes, cpu_thousandths), (None, None));
    text(odd.expect("a line"))
}

#[test]
fn no_files_are_no_limit() {
    let tree = Tree::new();
    assert_eq!(found(&tree), (None, None));
    tree.file("proc/self/cgroup", "0::/a\n");
    assert_eq!(found(&tree), (None, None));
    tree.file("proc/self/mountinfo", V2_MOUNT);
    assert_eq!(found(&tree), (None, None));
    assert_eq!(limits_under(&[b'x'; 5000]).memory_bytes, None);
}

#[test]
fn version_2_takes_the_tightest_of_all_groups_on_the_way_up() {
    let tree = v2("/a/b/c");
    tree.file("sys/fs/cgroup/a/b/c/memory.max", "max\n").file("sys/fs/cgroup/a/b/c/cpu.max", "max 100000\n");
    assert_eq!(found(&tree), (None, None));
    tree.file("sys/fs/cgroup/a/b/memory.max", "3000000\n").file("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
    assert_eq!(found(&tree), (Some(3_000_000), Some(1500)));
    tree.file("sys/fs/cgroup/a/memory.max", "2000000\n").file("sys/fs/cgroup/a/b/cpu.max", "300000 100000\n");
    assert_eq!(found(&tree), (Some(2_000_000), Some(1500)));
    tree.file("sys/fs/cgroup/a/b/c/memory.high", "1000000\n").file("sys/fs/cgroup/cpu.max", "1 3\n");
    assert_eq!(found(&tree), (Some(1_000_000), Some(334)));
    tree.file("sys/fs/cgroup/a/b/d/memory.max", "5\n");
    assert_eq!(found(&tree), (Some(1_000_000), Some(334)));
}

#[test]
fn version_1_has_a_hierarchy_for_each() {
    let tree = v1();
    tree.file("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
        .file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n")
        .file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    assert_eq!(found(&tree), (None, None));
    tree.file("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "536870912\n")
        .file("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "250000\n")
        .file("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n")
        .file("sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us", "50000\n")
        .file("sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_period_us", "10000\n");
    assert_eq!(found(&tree), (Some(512 << 20), Some(2500)));
}

#[test]
fn hybrid_trees_give_the_tighter_of_both() {
    let tree = Tree::new();
    tree.file("proc/self/cgroup", &format!("{V1_GROUPS}0::/u\n"))
        .file("proc/self/mountinfo", &format!("{V1_MOUNTS}{}", V2_MOUNT.replace("/cgroup rw", "/cgroup/unified rw")))
        .file("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "8000\n")
        .file("sys/fs/cgroup/unified/u/memory.max", "9000\n")
        .file("sys/fs/cgroup/unified/u/cpu.max", "200000 100000");
    assert_eq!(found(&tree), (Some(8000), Some(2000)));
}

#[test]
fn a_container_sees_its_group_at_the_top_of_the_mount() {
    // Version 1, no namespace: the mount begins at the container's group.
    let tree = Tree::new();
    tree.file("proc/self/cgroup", "4:memory:/docker/abc/in\n")
        .file("proc/self/mountinfo", "1 2 0:3 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n")
        .file("sys/fs/cgroup/memory/in/memory.limit_in_bytes", "2000\n")
        .file("sys/fs/cgroup/memory/memory.limit_in_bytes", "3000\n");
    assert_eq!(found(&tree), (Some(2000), None));
    // Only begins like the mount's.
    tree.file("proc/self/cgroup", "4:memory:/docker/abcd/in\n");
    assert_eq!(found(&tree), (Some(3000), None));
    let outside = v2("/../../other");
    outside.file("sys/fs/cgroup/memory.max", "4000\n").file("sys/fs/other/memory.max", "1\n");
    assert_eq!(found(&outside), (Some(4000), None));
}

#[test]
fn of_several_mounts_the_one_that_holds_the_group_counts() {
    let tree = v2("/a");
    let other = V2_MOUNT.replace("0:26 / /sys/fs/cgroup", "0:26 /z /mnt\\040x");
    tree.file("proc/self/mountinfo", &format!("{other}{V2_MOUNT}"))
        .file("mnt x/memory.max", "5\n")
        .file("sys/fs/cgroup/a/memory.max", "6\n");
    assert_eq!(found(&tree), (Some(6), None));
    tree.file("proc/self/mountinfo", &other);
    assert_eq!(found(&tree), (Some(5), None));
}

#[test]
fn odd_files_are_no_limit_and_are_named() {
    for odd in ["", "\n", "abc\n", "-1\n", "12x\n", "99999999999999999999\n", "1 2\n", "\u{1}\u{2}"] {
        let tree = v2("/a");
        tree.file("sys/fs/cgroup/a/memory.max", odd);
        let said = said(&tree);
        assert!(said.contains("/sys/fs/cgroup/a/memory.max reads \"") && said.ends_with("taken as no limit"), "{said}");
    }
    for odd in ["", "100000", "100000 ", "0 100000", "5 0", "max", "a b", "1 2 3"] {
        let tree = v2("/a");
        tree.file("sys/fs/cgroup/cpu.max", odd);
        assert!(said(&tree).contains("/sys/fs/cgroup/cpu.max reads"), "{odd}");
    }
    let tree = v1();
    tree.file("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
        .file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-2\n");
    assert!(said(&tree).contains("cfs_quota_us reads \"-2\""));
    tree.file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "5\n");
    assert!(said(&tree).ends_with("cpu.cfs_period_us is missing, but there is a quota; taken as no limit"));
    tree.file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "0\n");
    assert!(said(&tree).contains("cfs_period_us reads \"0\""));
}

#[test]
fn an_odd_file_does_not_hide_a_limit_elsewhere() {
    let tree = v2("/a");
    tree.file("sys/fs/cgroup/a/memory.max", "?").file("sys/fs/cgroup/memory.max", "7\n");
    let limits = limits_under(tree.root());
    assert!(limits.odd.is_some());
    assert_eq!(limits.memory_bytes, Some(7));
}

#[test]
fn a_file_that_must_be_there_and_is_not_is_named() {
    let tree = v1();
    let line = said(&tree);
    assert!(line.contains("/sys/fs/cgroup/memory/a/memory.limit_in_bytes is missing"), "{line}");
    tree.file("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    assert_eq!(found(&tree), (None, None));
}

#[test]
fn a_file_that_cannot_be_read_is_named_with_the_reason() {
    for file in [
        "proc/self/cgroup",
        "proc/self/mountinfo",
        "sys/fs/cgroup/a/memory.max",
        "sys/fs/cgroup/a/memory.high",
        "sys/fs/cgroup/cpu.max",
    ] {
        let tree = v2("/a");
        let _ = std::fs::remove_file(tree.path(file));
        std::fs::create_dir_all(tree.path(file)).unwrap();
        let line = said(&tree);
        assert!(line.ends_with(&format!("/{file} cannot be read (errno 21); taken as no limit")), "{line}");
        assert!(!limits_under(tree.root()).is_partial);
        std::fs::remove_dir(tree.path(file)).unwrap();
        std::os::unix::fs::symlink(tree.path(file), tree.path(file)).unwrap();
        let line = said(&tree);
        assert!(line.ends_with(&format!("/{file} cannot be read (errno 40); taken as no limit")), "{line}");
    }
}

#[test]
fn what_the_process_is_short_of_for_a_moment_makes_the_answer_a_partial_one() {
    let mut limits = Limits::default();
    limits.record_unread(super::said(b"/f"), Unread(libc::EMFILE));
    assert!(limits.is_partial);
    assert_eq!(
        limits.odd.map(text).unwrap(),
        "craton: /f cannot be read (errno 24); what was read before counts, if anything was"
    );
}

#[test]
fn where_the_limit_on_memory_is_from_is_told() {
    let source = |tree: &Tree| limits_under(tree.root()).memory_source;
    assert_eq!(source(&Tree::new()), Source::Nowhere);
    let tree = v2("/a");
    assert_eq!(source(&tree), Source::V2, "though there is none");
    tree.file("sys/fs/cgroup/a/memory.max", "7\n");
    assert_eq!(source(&tree), Source::V2);
    let tree = v1();
    assert_eq!(source(&tree), Source::V1);
    tree.file("proc/self/cgroup", &format!("{V1_GROUPS}0::/u\n"))
        .file("proc/self/mountinfo", &format!("{V1_MOUNTS}{}", V2_MOUNT.replace("/cgroup rw", "/cgroup/unified rw")));
    assert_eq!(source(&tree), Source::V1);
    tree.file("sys/fs/cgroup/unified/u/memory.max", "9000\n");
    assert_eq!(source(&tree), Source::V2);
    tree.file("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9001\n");
    assert_eq!(source(&tree), Source::V2);
    tree.file("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "8000\n");
    assert_eq!(source(&tree), Source::V1);
}

#[test]
fn odd_lists_of_groups_and_mounts_are_passed_over() {
    let tree = v2("/a");
    tree.file("sys/fs/cgroup/a/memory.max", "7\n");
    let long = "x".repeat(10_000);
    for groups in [format!("junk\n\n::\n1:2\n{long}\n0::/a\n"), "0::/a".into()] {
        tree.file("proc/self/cgroup", &groups);
        assert_eq!(found(&tree), (Some(7), None));
    }
    tree.file("proc/self/mountinfo", &format!("junk\n1 2 3 4\n1 2 3 / /x -\n{long} - cgroup2 c rw\n{V2_MOUNT}"));
    assert_eq!(found(&tree), (Some(7), None));
    for groups in ["", "\n", "0::\n", "0::a\n", "1::/a\n", "0:x:/a\n"] {
        tree.file("proc/self/cgroup", groups);
        assert_eq!(found(&tree), (None, None), "{groups}");
    }
    tree.file("proc/self/cgroup", &format!("0::/{}\n", "a/".repeat(900)));
    assert_eq!(found(&tree), (None, None), "a name that does not fit");
}

#[test]
fn a_large_quota_is_no_overflow() {
    let tree = v2("/");
    tree.file("sys/fs/cgroup/cpu.max", "18446744073709551615 1")
        .file("sys/fs/cgroup/memory.max", "18446744073709551615");
    assert_eq!(found(&tree), (None, Some(u64::MAX)));
}

#[test]
fn pressure_is_the_larger_of_the_system_and_the_group() {
    let tree = v2("/a");
    let pressure = || {
        let (pressure, odd) = pressure_under(tree.root());
        (pressure, odd.map(text))
    };
    assert_eq!(pressure(), (None, None));
    let line = |n: &str| format!("some avg10={n} avg60=0.00 avg300=0.00 total=1\nfull avg10=99.00 avg60=0.00\n");
    tree.file("proc/pressure/memory", &line("1.25"));
    assert_eq!(pressure(), (Some(125), None));
    tree.file("sys/fs/cgroup/a/memory.pressure", &line("100.00"));
    assert_eq!(pressure(), (Some(10_000), None));
    for odd in
        ["", "some", "some avg10=", "some avg10=1 x", "some avg10=1.2 x", "some avg10=101.00 x", "full avg10=1.00 x"]
    {
        tree.file("sys/fs/cgroup/a/memory.pressure", odd);
        let (pressure, said) = pressure();
        assert_eq!(pressure, Some(125), "{odd}");
        assert!(said.is_some_and(|line| line.contains(&format!("/a/memory.pressure reads \"{odd}\", "))), "{odd}");
    }
}

#[test]
fn this_machine_can_be_asked() {
    let limits = limits();
    assert!(limits.odd.is_none());
    assert!(limits.memory_bytes.is_none_or(|b| b > 1 << 20));
}

#[test]
fn the_events_are_those_of_the_tightest_memory_limit() {
    let tree = v2("/a/b");
    assert_eq!(Events::under(tree.root()), Events::default());
    tree.file("sys/fs/cgroup/a/b/memory.max", "max\n").file("sys/fs/cgroup/a/b/memory.events", "max 9\n");
    assert_eq!(Events::under(tree.root()), Events::default());
    tree.file("sys/fs/cgroup/a/memory.max", "4096\n");
    tree.file("sys/fs/cgroup/a/memory.events", "low 0\nmax 3\noom 1\noom_kill 2\noom_group_kill 7\n");
    let events = Events { limit_bytes: Some(4096), reached: 3, kills: 2 };
    assert_eq!(Events::under(tree.root()), events);
    assert_eq!(events.since(Events { reached: 1, ..events }), Events { reached: 2, kills: 0, ..events });
    tree.file("sys/fs/cgroup/memory.max", "8192\n");
    assert_eq!(Events::under(tree.root()), events, "the root's is wider");

    let tree = v1();
    tree.file("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "2048\n");
    tree.file("sys/fs/cgroup/memory/a/memory.failcnt", "5\n");
    tree.file("sys/fs/cgroup/memory/a/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
    assert_eq!(Events::under(tree.root()), Events { limit_bytes: Some(2048), reached: 5, kills: 1 });
    tree.file("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n");
    assert_eq!(Events::under(tree.root()), Events::default());
}
