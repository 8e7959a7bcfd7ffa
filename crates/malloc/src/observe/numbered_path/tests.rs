use super::*;
use std::string::String;
use std::vec;

fn text(path: &Ended) -> String {
    String::from_utf8(path.text().to_vec()).unwrap()
}

#[test]
fn numbers_stand_for_their_letters() {
    let path = NumberedPath::new(Rank::None);
    assert!(path.named(7, || 1).is_none() && !path.is_set());
    assert!(path.set(b"/tmp/a-%p-%n-%x%"));
    let mut files = 0;
    let mut next = || {
        files += 1;
        files
    };
    assert_eq!(text(&path.named(7, &mut next).unwrap()), "/tmp/a-7-1-%x%");
    assert_eq!(text(&path.named(u32::MAX, next).unwrap()), "/tmp/a-4294967295-2-%x%");
    assert_eq!(path.try_named(7).unwrap().with_end().last(), Some(&0));
    assert!(path.set(b"") && path.named(7, || 1).is_none());
}

#[test]
fn a_path_with_its_numbers_fits_or_is_refused() {
    let path = NumberedPath::new(Rank::None);
    let longest = vec![b'x'; PATH_MAX - 1];
    assert!(path.set(&longest) && path.named(1, || 1).unwrap().text() == longest);
    assert!(!path.set(&[b'x'; PATH_MAX]) && !path.set(b"a\0b"));
    let with_number = [&longest[..PATH_MAX - 21], b"%p"].concat();
    assert!(!path.set(&with_number));
    assert!(path.named(1, || 1).unwrap().text() == longest, "a refused path changes nothing");
}

#[test]
fn a_path_keeps_its_bytes_in_any_encoding() {
    for kept in ["/tmp/gr\u{f6}\u{df}e.profile".as_bytes(), b"/tmp/\xff\xfe\t.profile"] {
        let path = NumberedPath::new(Rank::None);
        assert!(path.set(kept));
        assert_eq!(path.named(1, || 1).unwrap().text(), kept);
    }
}
