//! Sorts lines by their digits. An epoch writes back some 1,500, and each comparison of a random
//! one is a mispredicted branch.

/// Of a line's number.
const DIGIT_BITS: u32 = 11;
const DIGITS: usize = 1 << DIGIT_BITS;
const LINE_BITS: u32 = 6;
/// Below, counting digits costs more than comparisons.
const FEW: usize = 256;

/// Of multiples of a line.
pub fn sorted(mut lines: Vec<u64>) -> Vec<u64> {
    if lines.len() < FEW {
        lines.sort_unstable();
        return lines;
    }
    let bits = u64::BITS - lines.iter().fold(0, |all, line| all | line).leading_zeros();
    let mut other = vec![0; lines.len()];
    for shift in (LINE_BITS..bits).step_by(DIGIT_BITS as usize) {
        let digit = |line: u64| (line >> shift) as usize % DIGITS;
        let mut places = [0u32; DIGITS];
        lines.iter().for_each(|line| places[digit(*line)] += 1);
        let mut begin = 0;
        places.iter_mut().for_each(|place| (begin, *place) = (begin + *place, begin));
        for line in &lines {
            let place = &mut places[digit(*line)];
            other[*place as usize] = *line;
            *place += 1;
        }
        std::mem::swap(&mut lines, &mut other);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::{FEW, sorted};
    use craton_base::LINE_BYTES;

    #[test]
    fn lines_are_sorted_as_by_comparison() {
        let mut random = 1u64;
        for (n, most) in [(0, 1), (1, 1 << 20), (FEW - 1, 1 << 30), (FEW, 1 << 8), (2000, 1 << 20), (2000, 1 << 48)] {
            let line = |_| {
                random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                (random >> 15) % most / LINE_BYTES * LINE_BYTES
            };
            let lines: Vec<u64> = (0..n).map(line).collect();
            let mut expected = lines.clone();
            expected.sort_unstable();
            assert_eq!(sorted(lines), expected);
        }
    }
}
