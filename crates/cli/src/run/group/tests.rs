use super::*;

fn files(top: &Path, folder: &str, files: &[(&str, &str)]) {
    let folder = top.join(folder);
    fs::create_dir_all(&folder).unwrap();
    files.iter().for_each(|(name, text)| fs::write(folder.join(name), text).unwrap());
}

#[test]
fn the_tightest_group_counts_in_either_version() {
    let top = tempfile::tempdir().unwrap();
    let top = top.path();
    files(top, "a/b", &[("memory.max", "max\n"), ("memory.events", "max 9\n")]);
    files(top, "a", &[("memory.max", "4096\n"), ("memory.events", "low 0\nmax 3\noom 1\noom_kill 2\n")]);
    files(top, "memory/x", &[("memory.limit_in_bytes", "2048\n"), ("memory.failcnt", "5\n")]);
    let group = Group { limit_bytes: Some(4096), reached: 3, kills: 2 };
    assert_eq!(Group::of("0::/a/b\n", top), group);
    let group = Group { limit_bytes: Some(2048), reached: 5, kills: 0 };
    assert_eq!(Group::of("7:cpu,memory:/x\n3:cpu:/a\n0::/a/b\n", top), group);
    assert_eq!(group.since(Group { reached: 4, ..group }).reached, 1);
    assert_eq!(Group::of("0::/none\n", top), Group::default());
    files(top, "memory/x", &[("memory.limit_in_bytes", "9223372036854771712\n")]);
    assert_eq!(Group::of("7:memory:/x\n", top), Group::default());
}
