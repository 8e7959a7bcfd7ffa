use super::*;
use crate::tests::Tree;

#[test]
fn a_dax_device_has_the_size_that_the_system_lists() {
    let tree = Tree::new();
    tree.file("dev/char/252:3/size", "4194304\n").file("dev/char/1:3/uevent", "");
    assert_eq!(dax_size(tree.root(), (252, 3)), Some(4 << 20));
    assert_eq!(dax_size(tree.root(), (1, 3)), None);
}
