use super::*;

#[test]
fn the_first_byte_that_differs_is_named() {
    let mut memory = [0u8; 150];
    for bytes in 0..=memory.len() {
        for start in [0, 1] {
            let n = bytes.saturating_sub(start);
            let at = memory[start..].as_mut_ptr();
            // SAFETY: `n` bytes of the array.
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
    // SAFETY: the array's bytes.
    unsafe {
        fill_redzone(memory.as_mut_ptr(), 19, 7);
        assert_eq!(check_redzone(memory.as_ptr(), 19, 7), None);
        assert_eq!(check_redzone(memory.as_ptr(), 20, 7).map(|w| w.offset), Some(19));
        for value in 0..=u8::MAX {
            memory[..19].fill(value);
            assert!(check_redzone(memory.as_ptr(), 19, 7).is_some(), "{value:#x} is written unseen");
            let is_plain = value.is_ascii() || value == 0xff;
            assert!(!is_plain || check_redzone(memory.as_ptr(), 1, 7).is_some(), "{value:#x}");
        }
    }
}

#[test]
fn a_byte_that_matches_under_one_secret_does_not_under_most_others() {
    let mut memory = [0u8; 1];
    let matches = |memory: &mut [u8; 1], secret: u64| {
        memory[0] = 0xfd;
        // SAFETY: the array's byte.
        unsafe { check_redzone(memory.as_ptr(), 1, secret.wrapping_mul(0x2545_f491_4f6c_dd1d)).is_none() }
    };
    let count = (1..=12_700).filter(|secret| matches(&mut memory, *secret)).count();
    // One in 127.
    assert!((50..=200).contains(&count), "{count}");
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
