use super::*;

#[test]
fn the_tightest_group_counts_and_cached_files_make_room() {
    let root = std::env::temp_dir().join(format!("craton-inspect-groups-{}", std::process::id()));
    let folder = root.join("a/b");
    fs::create_dir_all(&folder).unwrap();
    let write = |name: &str, text: &str| fs::write(root.join(name), text).unwrap();
    write("a/b/memory.max", "max\n");
    assert_eq!(left_in_groups("0::/a/b\n", &root), u64::MAX, "no limit");
    write("a/memory.max", "1000\n");
    write("a/memory.current", "900\n");
    write("a/memory.stat", "anon 200\ninactive_file 300\n");
    assert_eq!(left_in_groups("0::/a/b\n", &root), 400);
    write("a/b/memory.max", "500\n");
    write("a/b/memory.current", "450\n");
    assert_eq!(left_in_groups("0::/a/b\n", &root), 50);
    fs::create_dir_all(root.join("memory/c")).unwrap();
    write("memory/c/memory.limit_in_bytes", "70\n");
    write("memory/c/memory.usage_in_bytes", "60\n");
    assert_eq!(left_in_groups("5:cpu,memory:/c\n1:name=systemd:/c\n", &root), 10);
    fs::remove_dir_all(&root).unwrap();
}

#[test]
fn available_memory_is_read() {
    assert_eq!(available("MemTotal: 9 kB\nMemAvailable:     3 kB\n"), 3 << 10);
    assert_eq!(available(""), 0);
    assert!(spare_bytes() > 0);
}
