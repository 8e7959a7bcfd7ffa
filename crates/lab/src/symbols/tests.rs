use super::*;
use crate::scratch::Scratch;
use std::process::Command;

fn compiled(scratch: &Scratch, name: &str, source: &str, flags: &[&str]) -> PathBuf {
    let path = scratch.path().join(name);
    let text = path.with_extension("c");
    fs::write(&text, source).expect("a source");
    let mut compiler = Command::new("gcc");
    assert!(compiler.args(flags).arg("-o").arg(&path).arg(&text).status().expect("a compiler").success());
    path
}

#[test]
fn a_stub_for_a_function_elsewhere_is_no_definition() {
    let scratch = Scratch::new("a test of symbols").expect("a directory");
    let taken = "#include <stdlib.h>\nint main(void) { void *(*volatile f)(size_t) = malloc; return f(9) == 0; }";
    let stub = compiled(&scratch, "stub", taken, &["-no-pie", "-fno-pie", "-O0"]);
    assert_eq!(defines(&stub, "malloc"), Some(false));
    assert_eq!(defines(&stub, "no_such_function"), Some(false));
    let own = "#include <stddef.h>\nvoid *malloc(size_t n) { (void)n; return 0; }";
    let own = compiled(&scratch, "own.so", own, &["-shared", "-fPIC"]);
    assert_eq!((defines(&own, "malloc"), defines(&own, "mallo")), (Some(true), Some(false)));
}

#[test]
fn what_has_no_table_tells_nothing() {
    let scratch = Scratch::new("a test of symbols").expect("a directory");
    let own = fs::read(env::current_exe().expect("this program")).expect("its file");
    let path = scratch.path().join("cut");
    // The sections' headers are at the end.
    for bytes in [b"".as_slice(), b"#!/bin/sh\n", &own[..6], &own[..64], &own[..own.len() / 2]] {
        fs::write(&path, bytes).expect("a file");
        assert_eq!(defines(&path, "malloc"), None, "{} bytes", bytes.len());
    }
    for path in ["/", "/dev/null", "/nowhere"] {
        assert_eq!(defines(Path::new(path), "malloc"), None, "{path}");
    }
}

#[test]
fn a_program_is_found_as_exec_does() {
    assert!(program(OsStr::new("sh")).is_some_and(|path| path.is_absolute()));
    assert_eq!(program(OsStr::new("./x")), Some("./x".into()));
    assert_eq!(program(OsStr::new("no-such-program-here")), None);
}
