extern crate std;
use super::*;
use crate::tests::Tree;
use std::os::unix::fs::symlink;

fn tree(domain: &str) -> Tree {
    let tree = Tree::new();
    tree.file("devices/bus/region0/persistence_domain", domain);
    tree.file("devices/bus/region0/namespace0.0/block/pmem0/pmem0p1/partition", "1");
    tree.file("dev/block/none", "");
    let disk = "../../devices/bus/region0/namespace0.0/block/pmem0";
    symlink(disk, tree.path("dev/block/259:0")).unwrap();
    symlink(std::format!("{disk}/pmem0p1"), tree.path("dev/block/259:1")).unwrap();
    symlink("../../../namespace0.0", tree.path("devices/bus/region0/namespace0.0/block/pmem0/device")).unwrap();
    tree
}

#[test]
fn a_region_reports_persistent_caches_to_its_disks_and_partitions() {
    let tree = tree("cpu_cache\n");
    for device in [(259, 0), (259, 1)] {
        assert!(is_cpu_cache(tree.root(), b"/dev/block/", device), "{device:?}");
    }
    assert!(!is_cpu_cache(tree.root(), b"/dev/block/", (8, 0)), "no region");
}

#[test]
fn other_regions_have_volatile_caches() {
    let tree = tree("memory_controller\n");
    assert!(!is_cpu_cache(tree.root(), b"/dev/block/", (259, 0)));
}
