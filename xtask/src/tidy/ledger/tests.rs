use super::*;

const GIVEN: &str = "//! Memory.\n//!\n//! **Unsafe.** It reads what\n//! the caller vouched for.\n//!\n//! More.\n\
                     // SAFETY: fine.\nunsafe impl Send for A {}\nunsafe fn f() {}\n";

fn complaints(source: &str) -> usize {
    check(&[File::new("crates/x/src/a.rs", source)]).len()
}

#[test]
fn a_row_has_the_sites_and_the_reason() {
    let text = write(&[File::new("crates/x/src/a.rs", GIVEN), File::new("crates/x/src/plain.rs", "fn f() {}\n")]);
    assert_eq!(text, "   2  crates/x/src/a.rs  It reads what the caller vouched for.\n   2  in 1 files\n");
}

#[test]
fn a_file_without_a_reason_fails() {
    assert_eq!(complaints(GIVEN), 0);
    assert_eq!(complaints(&GIVEN.replace("**Unsafe.**", "Unsafe.")), 1);
    assert_eq!(complaints("//! **Unsafe.**\n//!\n//! It reads.\nunsafe fn f() {}\n"), 1);
    assert_eq!(complaints("// **Unsafe.** Not the module's comment.\nfn f() { unsafe { g() } }\n"), 1);
}

#[test]
fn tests_types_and_words_are_no_sites() {
    assert_eq!(complaints("#[cfg(test)]\nmod tests { fn f() { unsafe { g() } } }\n"), 0);
    assert_eq!(complaints("type A = unsafe fn(u8);\ntype B = unsafe extern \"C\" fn();\n"), 0);
    assert_eq!(complaints("// unsafe\nconst A: &str = \"unsafe\";\n"), 0);
    assert_eq!(check(&[File::new("crates/x/tests/a.rs", "unsafe fn f() {}")]), []);
}
