//! Bits of a row: 1 is an allocated frame.

/// By order: where an aligned group may begin.
const ALIGNED: [u64; 7] = [
    u64::MAX,
    0x5555_5555_5555_5555,
    0x1111_1111_1111_1111,
    0x0101_0101_0101_0101,
    0x0001_0001_0001_0001,
    0x0000_0001_0000_0001,
    1,
];

pub(crate) const fn mask(at: u32, order: u32) -> u64 {
    (u64::MAX >> (64 - (1u32 << order))) << at
}

#[inline(always)]
pub(crate) const fn groups(free: u64, order: u32) -> u64 {
    if order == 6 {
        return (free == u64::MAX) as u64;
    }
    if order == 5 {
        let (low, high) = (free as u32 == u32::MAX, (free >> 32) as u32 == u32::MAX);
        return low as u64 | (high as u64) << 32;
    }
    let mut groups = free;
    let mut i = 0;
    while i < order {
        groups &= groups >> (1u32 << i);
        i += 1;
    }
    groups & ALIGNED[order as usize]
}

pub(crate) const fn first_group(free: u64, order: u32) -> Option<u32> {
    let groups = groups(free, order);
    if groups == 0 { None } else { Some(groups.trailing_zeros()) }
}
