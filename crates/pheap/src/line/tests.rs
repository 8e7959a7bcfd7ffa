use super::*;

#[test]
fn a_line_is_read_as_it_was_written() {
    for kind in Kind::ALL {
        let redo =
            Redo { kind, slot: OFFSET_MASK - 7, old: 5, new: u64::MAX, home: 1 << 47, value: 9, len: 0xdead_beef };
        let place = Place { epoch: 1 << 40, part: 62, parts: 63, stamp: 77 };
        let line = redo.encode(place, 42);
        assert_eq!(Redo::decode(&line, 42), Some((redo, place)));
        assert_eq!(Redo::decode(&line, 43), None);
        assert_eq!(Redo::decode_summed(&redo.encode_summed(7), 7).map(|found| found.0), Some(redo));
        assert_eq!(Redo::decode_summed(&redo.encode_summed(7), 8), None);
    }
    assert_eq!(Redo::decode_unchecked(&[0; 8]), None);
    assert_eq!(Redo::decode(&[0; 8], 42), None);
}
