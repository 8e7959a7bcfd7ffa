use super::*;

#[test]
fn a_pattern_that_names_what_is_gone_fails() {
    let script =
        "    *(.text.malloc .text*12craton_pages4heap34*4take* .text*6craton1c*)\n    *(.text*12craton_pages3fat*)\n";
    let files = [
        File::new(SCRIPT, script),
        File::new("crates/pages/src/lib.rs", "mod heap;\n"),
        File::new("crates/pages/src/heap.rs", "fn take() {}\n"),
        File::new("crates/preload/src/lib.rs", "mod c;\n"),
        File::new("crates/malloc/src/lib.rs", "mod fat;\n"),
    ];
    let found = check(&files);
    assert!(found.len() == 1 && found[0].line == 2 && found[0].text.contains("names fat, which"), "{found:?}");
    assert_eq!(check(&files[1..]), []);
}

#[test]
fn names_are_a_length_and_as_many_letters() {
    assert_eq!(names(".text*12craton_pages4heap34*8back_new*"), ["craton_pages", "heap", "back_new"]);
    assert_eq!(names(".text._Zn* .text*LongestFreeFirst*4find*"), ["find"]);
}
