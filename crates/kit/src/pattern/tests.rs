use super::*;

#[test]
fn the_first_byte_that_differs_is_named() {
    let mut memory = [0u8; 150];
    for bytes in 0..=memory.len() {
        for start in [0, 1] {
            let n = bytes.saturating_sub(start);
            let at = memory[start..].as_mut_ptr();
            // SAFETY: `n` bytes from there on are the array's.
            unsafe {
                fill(at, n, FREED);
                assert_eq!(check(at, n, FREED), None);
                for i in 0..n {
                    let expected = at.add(i).read();
                    at.add(i).write(!expected);
                    assert_eq!(check(at, n, FREED), Some(Wrong { offset: i, found: !expected, expected }));
                    at.add(i).write(expected);
                }
            }
        }
    }
}

#[test]
fn redzones_have_bytes_that_differ_and_are_no_text() {
    let mut memory = [0u8; 20];
    // SAFETY: the array's own bytes.
    unsafe {
        fill_redzone(memory.as_mut_ptr(), 19);
        assert_eq!(check_redzone(memory.as_ptr(), 19), None);
        assert_eq!(check_redzone(memory.as_ptr(), 20).map(|w| w.offset), Some(19));
        for value in 0..=u8::MAX {
            memory[..19].fill(value);
            assert!(check_redzone(memory.as_ptr(), 2).is_some(), "{value:#x} is written unseen");
            assert!(!value.is_ascii() || check_redzone(memory.as_ptr(), 1).is_some(), "{value:#x}");
        }
    }
}

#[test]
fn pointers_from_patterns_are_known() {
    for word in [FREED, FRESH] {
        let twice = (word as usize) << 32 | word as usize;
        assert!(is_made_of(twice, word) && is_made_of(twice + 24, word) && is_made_of(word as usize, word));
        assert!(is_made_of(twice.rotate_left(16), word));
        assert!(!is_made_of(0, word) && !is_made_of(0x7fff_1234_5678, word));
    }
    assert!(!is_made_of((FREED as usize) << 32 | FREED as usize, FRESH));
}
