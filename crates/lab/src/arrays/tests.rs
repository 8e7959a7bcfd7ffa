use super::*;

#[test]
fn arrays_begin_on_lines_and_hold_what_they_were_filled_with() {
    for needed in [0, 1, 31, 32, 33] {
        let array = Array::new(needed, || AtomicU16::new(0x5a5a));
        assert_eq!(array.needed().len(), needed);
        assert_eq!(array.needed().as_ptr() as usize % LINE, 0);
        assert!(array.behind().len() == 32 && array.behind().iter().all(|e| e.value() == 0x5a5a));
    }
}
