extern crate std;
use super::*;
use crate::maps;
use std::borrow::ToOwned;
use std::string::String;

/// As the kernel prints it: this crate's other readers see anonymous memory without a name.
fn shown(at: usize) -> String {
    let text = std::fs::read_to_string("/proc/self/maps").unwrap();
    let starts =
        |line: &&str| usize::from_str_radix(line.split('-').next().unwrap(), 16).is_ok_and(|start| start <= at);
    text.lines().rfind(starts).unwrap().to_owned()
}

/// One test, since the switch is the process's.
#[test]
fn mappings_have_names_until_the_system_refuses_one() {
    let bytes = 4 * process::page_size();
    let map = || mapping::map(bytes, bytes).unwrap();
    let unnamed = map();
    assert!(!shown(unnamed).contains("craton"), "off: {}", shown(unnamed));

    turn(true);
    // Kernels without the feature have refused one already.
    let has_names = is_on();
    let named = map();
    assert_eq!(shown(named).ends_with("[anon:craton: tables]"), has_names, "{}", shown(named));
    assert!(maps::at(named, |m| m.name.is_empty()).unwrap(), "a named mapping is still anonymous");

    turn(true);
    process::set_errno(17);
    // SAFETY: our mapping.
    unsafe { (named as *mut u64).write(7) };
    // No kernel takes this name.
    label(named, bytes, c"a [bracket]");
    assert!(!is_on() && process::errno() == 17, "the refusal is remembered, and errno as before");
    // SAFETY: as above.
    assert_eq!(unsafe { (named as *const u64).read() }, 7);
    let after = map();
    assert!(!shown(after).contains("craton"), "{}", shown(after));
    [unnamed, named, after].into_iter().for_each(|at| mapping::unmap(at, bytes));
}
