extern crate std;
use super::*;
use crate::tests::Tree;
use std::vec::Vec;

fn lines(text: &str) -> Vec<Vec<u8>> {
    let tree = Tree::new();
    tree.file("f", text);
    let mut path = PathText::new(tree.root()).unwrap();
    assert!(path.push(b"/f"));
    let mut lines = Lines::open(&path).unwrap();
    let mut all = Vec::new();
    while let Some(line) = lines.next_line() {
        all.push(line.to_vec());
    }
    all
}

#[test]
fn lines_end_with_a_newline_or_the_file() {
    assert_eq!(lines(""), Vec::<Vec<u8>>::new());
    assert_eq!(lines("a\n\nbc"), [b"a".to_vec(), b"".to_vec(), b"bc".to_vec()]);
    let many = "0123456789\n".repeat(1000);
    assert_eq!(lines(&many), std::vec![b"0123456789".to_vec(); 1000]);
}

#[test]
fn a_line_that_does_not_fit_is_left_out() {
    let long = std::format!("a\n{}\nb\n{}", "x".repeat(5000), "y".repeat(5000));
    assert_eq!(lines(&long), [b"a".to_vec(), b"b".to_vec()]);
}

#[test]
fn a_path_that_does_not_fit_is_left_as_it_was() {
    let mut path = PathText::new(b"/a").unwrap();
    assert!(!path.push(&[b'x'; PathText::CAPACITY]) && !path.push(b"\0"));
    assert_eq!(path.as_bytes(), b"/a");
    path.truncate(1);
    assert_eq!(path.as_bytes(), b"/");
    assert!(PathText::new(&[b'x'; PathText::CAPACITY]).is_none());
    let absent = read_start(&PathText::new(b"/no/such/file").unwrap(), &mut [0; 8]).unwrap_err();
    assert!(absent.is_missing() && !absent.passes());
}

#[test]
fn what_is_no_file_ends_with_the_reason() {
    let mut lines = Lines::open(&PathText::new(b"/").unwrap()).unwrap();
    assert_eq!(lines.next_line(), None);
    assert_eq!(lines.outcome(), Err(Unread(libc::EISDIR)));
    assert!(!Unread(libc::EISDIR).is_missing() && !Unread(libc::EISDIR).passes());
}
