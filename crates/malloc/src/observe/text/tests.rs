use super::*;

#[test]
fn what_does_not_fit_is_cut_and_counted() {
    for size in 0..20 {
        let mut buffer = [b'#'; 20];
        let mut text = Text::new(&mut buffer[..size]);
        text.text("abc").number(1234567890).bytes(b"x");
        assert_eq!(text.end(), 14);
        let n = size.saturating_sub(1).min(14);
        assert_eq!(&buffer[..n], &b"abc1234567890x"[..n]);
        assert!(size == 0 || buffer[n] == 0);
        assert!(buffer[size..].iter().all(|b| *b == b'#'));
    }
}

#[test]
fn strings_are_escaped() {
    let mut buffer = [0; 64];
    let mut text = Text::new(&mut buffer);
    text.string(b"a\"b\\c\n\xff");
    let len = text.end();
    assert_eq!(&buffer[..len], br#""a\"b\\c??""#);
}
