use super::*;

#[test]
fn a_range_is_cut_by_another() {
    let cut = |a, b| without(a, b).collect::<Vec<_>>();
    assert_eq!(cut((10, 20), (12, 15)), [(10, 12), (15, 20)]);
    assert_eq!(cut((10, 20), (5, 15)), [(15, 20)]);
    assert_eq!(cut((10, 20), (15, 25)), [(10, 15)]);
    assert_eq!(cut((10, 20), (5, 25)), []);
    assert_eq!(cut((10, 20), (20, 25)), [(10, 20)]);
}

#[test]
fn what_can_be_written_is_a_root_and_devices_are_none() {
    let map = |start, writable, executable, path: &str| Map {
        start,
        end: start + 1,
        readable: true,
        writable,
        executable,
        offset: 0,
        path: path.to_owned(),
    };
    let alone = |writable, executable, path| is_root(&map(0, writable, executable, path), None);
    assert!(alone(true, false, "/lib/a.so") && alone(true, false, "") && alone(false, false, ""));
    assert!(!alone(false, false, "/lib/a.so") && !alone(true, false, "/dev/gpu"));
    assert!(!alone(false, true, "") && !alone(false, false, "[vvar]"));
    let (protected, data) = (map(0, false, false, "/lib/a.so"), map(1, true, false, "/lib/a.so"));
    assert!(is_root(&protected, Some(&data)), "addresses that the linker wrote and then protected");
    assert!(!is_root(&protected, Some(&map(1, true, false, "/lib/b.so"))));
    assert!(!is_root(&protected, Some(&map(2, true, false, "/lib/a.so"))));
}
