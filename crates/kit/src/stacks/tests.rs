use super::*;

#[test]
fn a_stack_has_one_number() {
    let stacks = std::boxed::Box::new(Stacks::new());
    assert_eq!((stacks.frames(1), stacks.range().0), (&[][..], 0), "before the first");
    let numbers: [u32; 100] = core::array::from_fn(|i| stacks.keep(&[i + 1, 2, 3]));
    for (i, number) in numbers.iter().enumerate() {
        assert_eq!(stacks.frames(*number), [i + 1, 2, 3]);
        assert_eq!(stacks.keep(&[i + 1, 2, 3]), *number);
    }
    assert_ne!(stacks.keep(&[1, 2]), numbers[0]);
    assert_eq!(stacks.keep(&[]), 0);
    assert_eq!(stacks.frames(0), []);
}

#[test]
fn when_the_reservation_is_full_stacks_are_counted_and_old_ones_stay() {
    let stacks = std::boxed::Box::new(Stacks::new());
    let number = stacks.keep(&[1, 2, 3]);
    stacks.used.store((BYTES / 8) as u32 - 8, Relaxed);
    assert_ne!(stacks.keep(&[9; 6]), 0, "the last that fits");
    for n in 1..4 {
        assert_eq!((stacks.keep(&[7, n as usize]), stacks.not_kept()), (0, n));
    }
    assert_eq!((stacks.frames(number), stacks.keep(&[1, 2, 3])), (&[1, 2, 3][..], number));
}
