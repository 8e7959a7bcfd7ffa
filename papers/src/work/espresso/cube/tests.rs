use super::*;

#[test]
fn inputs_keep_what_they_are_given() {
    let cube = Cube::full(20, 3).with_input(0, ZERO).with_input(17, ONE).with_outputs(0b101);
    assert_eq!([0, 1, 17, 19].map(|input| cube.input(input)), [ZERO, EITHER, ONE, EITHER]);
    assert_eq!((cube.outputs(), cube.literals()), (0b101, 2));
}

#[test]
fn cubes_meet_unless_an_input_or_the_outputs_keep_them_apart() {
    let full = Cube::full(20, 2);
    let (zero, one) = (full.with_input(18, ZERO), full.with_input(18, ONE));
    assert!(full.meets(&zero) && !zero.meets(&one));
    assert!(!full.with_outputs(1).meets(&full.with_outputs(2)));
    assert!(full.covers(&zero) && !zero.covers(&full) && zero.or(&one) == full);
    assert_eq!(zero.cofactor(&zero, &full), full);
}
