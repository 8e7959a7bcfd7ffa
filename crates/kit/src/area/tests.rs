use super::*;
use crate::pattern;
use std::vec;

const SIZES: [usize; 14] = [0, 1, 15, 16, 17, 100, 112, 113, 4000, 4096, 32_700, 33_000, 300_000, 3 << 20];

#[test]
fn an_object_of_the_heap_has_room_for_a_buffer_and_its_redzones() {
    for align in (0..=21).map(|n| 1usize << n) {
        for size in SIZES {
            let (front, tail) = around(size, align).unwrap();
            assert!(front.is_multiple_of(align) && front >= UNIT, "{size} at {align}");
            assert!((LEAST_TAIL..=TAIL).contains(&tail), "{tail} bytes behind {size} at {align}");
            let (class, bytes) = object_for(size, align, (front, tail));
            assert_eq!(bytes, front + size + tail);
            if let Some(class) = class {
                assert!(size_class::size_of_class(class) >= bytes, "{size} at {align}");
            }
        }
    }
}

#[test]
fn sizes_that_no_object_can_have_are_refused() {
    for size in [usize::MAX, usize::MAX - 16, isize::MAX as usize, isize::MAX as usize - 31] {
        assert_eq!(around(size, 16), None, "{size:#x}");
    }
    assert_eq!(around(1, 1 << 63), None);
}

fn buffer_in(memory: &mut [u128], size: usize, checks: u16) -> Buffer {
    let under = memory.as_mut_ptr() as usize;
    Buffer { address: under + UNIT, size, under, checks, ..Default::default() }
}

#[test]
fn redzones_touch_the_buffer_at_both_ends() {
    for size in SIZES {
        let buffer = Buffer { address: 0x10_0010, size, under: 0x10_0000, ..Default::default() };
        let [front, tail] = redzones(&buffer);
        assert_eq!(front, (buffer.under, UNIT));
        assert_eq!(tail.0, buffer.address + size);
    }
}

#[test]
fn every_byte_of_a_redzone_is_checked_and_no_byte_of_the_buffer() {
    for size in [1, 16, 40, 100] {
        let mut memory = vec![0u128; (size + UNIT + TAIL) / 16 + 1];
        let buffer = buffer_in(&mut memory, size, REDZONE);
        let [(front, before), (tail, behind)] = redzones(&buffer);
        // SAFETY: memory of buffer and redzones.
        unsafe {
            write_redzones(&buffer, 3);
            assert!(check_redzones(&buffer, 3).is_none());
            (buffer.address as *mut u8).write_bytes(0xff, size);
            assert!(check_redzones(&buffer, 3).is_none(), "the program may write there");
            for at in (front..front + before).chain(tail..tail + behind) {
                let was = (at as *mut u8).replace(0x11);
                let (offset, wrong) = check_redzones(&buffer, 3).unwrap();
                assert_eq!(offset, at as isize - buffer.address as isize);
                assert_eq!((wrong.found, wrong.expected), (0x11, was));
                (at as *mut u8).write(was);
            }
        }
    }
}

#[test]
fn without_the_check_there_are_no_redzones() {
    let mut memory = vec![0u128; 16];
    let buffer = buffer_in(&mut memory, 100, 0);
    // SAFETY: memory of buffer and redzones.
    unsafe {
        write_redzones(&buffer, 3);
        assert!(check_redzones(&buffer, 3).is_none());
    }
    assert!(memory.iter().all(|word| *word == 0), "nothing was written");
    assert_ne!(pattern::FRESH, pattern::FREED);
}
