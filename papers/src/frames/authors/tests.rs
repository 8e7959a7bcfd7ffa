use super::*;
use craton_lab::scratch::Scratch;

fn refusal(path: &Path) -> String {
    Authors::of(path, 4, Classes::Simple, 1 << 14, 1).err().expect("not the authors' library")
}

#[test]
fn a_library_that_is_missing_is_named_with_the_places_and_what_builds_it() {
    let places = [PathBuf::from("/nowhere/a"), PathBuf::from("/nowhere/b")];
    let why = find_in(&places, 32).expect_err("none");
    for part in ["llfree32", "32 huge frames", "make frames-peer", "/nowhere/a/llfree32.so", "/nowhere/b/llfree32.so"] {
        assert!(why.contains(part), "{part}: {why}");
    }
    let scratch = Scratch::new("a test").expect("a place");
    let file = scratch.path().join("llfree4.so");
    std::fs::write(&file, "no library").expect("written");
    assert_eq!(find_in(&[places[0].clone(), scratch.path().into()], 4), Ok(file.clone()));
    assert_eq!(refusal(&file), format!("{} is no shared library (it does not begin as one)", file.display()));
}

#[test]
fn a_library_without_the_functions_is_named_with_the_first_that_is_missing() {
    // It surely exists.
    let maps = std::fs::read_to_string("/proc/self/maps").expect("Linux");
    let libc = maps.lines().filter_map(|line| line.split_whitespace().last()).find(|path| path.contains("/libc.so"));
    let libc = libc.expect("a test program is linked dynamically");
    let why = refusal(Path::new(libc));
    assert!(why.starts_with(libc) && why.contains("no function llfree_abi"), "{why}");
}

#[test]
fn a_library_of_another_version_or_size_of_trees_is_refused() {
    assert_eq!(agree(ABI, 32, 32), Ok(()));
    assert!(agree(ABI + 1, 32, 32).is_err_and(|why| why.contains("version 2, and 1 is needed")));
    assert!(agree(ABI, 32, 4).is_err_and(|why| why.contains("has 32 huge frames a tree, and 4")));
}
