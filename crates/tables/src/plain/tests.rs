extern crate std;
use super::make_plain;
use std::vec::Vec;

fn plain(text: &[u8]) -> Vec<u8> {
    let mut text = text.to_vec();
    make_plain(&mut text);
    text
}

#[test]
fn what_ends_a_line_or_moves_a_cursor_becomes_question_marks() {
    assert_eq!(plain(b"a\nb\r\tc\x1b[31m\x7f\0"), b"a?b??c?[31m??");
    assert_eq!(plain("x\u{85}\u{9b}31m".as_bytes()), b"x????31m");
}

#[test]
fn letters_of_all_kinds_stay() {
    for text in ["", "redis-server", "größe", "日本語", "a\u{a0}b", "🦀"] {
        assert_eq!(plain(text.as_bytes()), text.as_bytes());
    }
}

#[test]
fn bytes_that_are_no_text_become_question_marks() {
    assert_eq!(plain(b"a\xffb\xc3"), b"a?b?");
    assert_eq!(plain(b"\x9b31m\xe6\x97"), b"?31m??");
    for byte in 0..=255u8 {
        let made = plain(&[byte, b'x']);
        assert!(std::str::from_utf8(&made).is_ok_and(|text| !text.contains(char::is_control)), "{byte:#x}");
    }
}
