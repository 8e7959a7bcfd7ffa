use super::*;

#[test]
fn the_check_sees_each_bit() {
    let line: Line = [1, 2, 3, 4, 5, 6, 7, 0];
    let check = check_of(&line, 99);
    for word in 0..7 {
        for bit in 0..64 {
            let mut other = line;
            other[word] ^= 1 << bit;
            assert_ne!(check_of(&other, 99), check, "word {word}, bit {bit}");
        }
    }
    assert_ne!(check_of(&line, 98), check);
}

#[test]
fn rings_lie_between_headers_and_data() {
    let places = Places { lanes: 64, half: 256, frames_end: 0 };
    assert_eq!(places.ring(0), LANES + 64 * 128);
    assert_eq!(places.data(), (places.ring(63) + 2 * 256 * 64).next_multiple_of(UNIT));
    assert_eq!(Places { lanes: 2, half: 4, frames_end: 0 }.data(), 2 * UNIT);
}
