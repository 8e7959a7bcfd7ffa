use super::*;

fn complaints(text: &str) -> Vec<String> {
    check("a.rs", text).into_iter().map(|c| c.to_string()).collect()
}

#[test]
fn each_mark_of_undone_work_fails() {
    for word in UNDONE {
        let found = complaints(&format!("fine\n    {word}(later)\n"));
        assert!(found.len() == 1 && found[0].starts_with("a.rs:2: "), "{word}: {found:?}");
    }
}

#[test]
fn a_test_that_runs_every_night_is_fine() {
    assert_eq!(complaints(&format!("{NIGHTLY}minutes\"]\n")), [""; 0]);
}

#[test]
fn a_local_path_fails_and_the_tail_of_another_does_not() {
    for local in LOCAL {
        for text in [format!("cd {local}x\n"), format!("\"{local}x\"\n"), format!("{local}\n"), format!("A={local}x\n")]
        {
            assert_eq!(complaints(&text).len(), 1, "{text}");
        }
        for text in [format!("my{local}x\n"), format!("${{dir}}{local}x\n"), format!("..{local}x\n")] {
            assert_eq!(complaints(&text), [""; 0], "{text}");
        }
    }
}

#[test]
fn white_space_at_the_end_of_a_line_fails() {
    for end in [" ", "\t", "\r"] {
        assert_eq!(complaints(&format!("a{end}\nb\n")).len(), 1, "{end:?}");
    }
    assert_eq!(complaints("a\n\nb\n"), [""; 0]);
}

#[test]
fn a_last_line_without_its_end_fails() {
    assert_eq!(complaints("a\nb"), ["a.rs:2: no end of line at the end of the file: add one"]);
    assert_eq!(complaints(""), [""; 0]);
}
