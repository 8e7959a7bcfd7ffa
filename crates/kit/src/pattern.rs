//! Patterns that show stray writes: 0xdeadbeef and 0xbaddcafe (Bonwick94 §6.3), redzones (§6.4).
//!
//! **Unsafe.** Fills and reads memory that the caller names.

pub const FREED: u32 = 0xdead_beef;
pub const FRESH: u32 = 0xbadd_cafe;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wrong {
    pub offset: usize,
    pub found: u8,
    pub expected: u8,
}

/// The word's lowest byte first.
/// # Safety
/// The bytes are the caller's.
pub unsafe fn fill(at: *mut u8, bytes: usize, word: u32) {
    let twice = u64::from(word) << 32 | u64::from(word);
    // SAFETY: by the contract.
    unsafe {
        for i in 0..bytes / 8 {
            at.add(8 * i).cast::<u64>().write_unaligned(twice);
        }
        for i in bytes / 8 * 8..bytes {
            at.add(i).write(byte(word, i));
        }
    }
}

/// The first byte that [`fill`] would write otherwise.
/// # Safety
/// The bytes can be read.
pub unsafe fn check(at: *const u8, bytes: usize, word: u32) -> Option<Wrong> {
    let twice = u64::from(word) << 32 | u64::from(word);
    // SAFETY: by the contract.
    let differs = |i: usize| unsafe { at.add(8 * i).cast::<u64>().read_unaligned() } ^ twice;
    let lines = (0..bytes / 64).take_while(|line| (0..8).fold(0, |all, i| all | differs(8 * line + i)) == 0).count();
    let first = (8 * lines..bytes / 8).find(|i| differs(*i) != 0).map_or(bytes / 8 * 8, |i| 8 * i);
    (first..bytes).find_map(|i| {
        // SAFETY: by the contract.
        let (found, expected) = (unsafe { at.add(i).read() }, byte(word, i));
        (found != expected).then_some(Wrong { offset: i, found, expected })
    })
}

/// From 0x80 to 0xfe: neither text, zero nor all ones. Place and secret decide, so that no constant
/// matches everywhere.
fn redzone(address: usize, secret: u64) -> u8 {
    0x80 + ((address as u64 ^ secret).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8 % 127
}

/// # Safety
/// The bytes can be read.
pub unsafe fn check_redzone(at: *const u8, bytes: usize, secret: u64) -> Option<Wrong> {
    (0..bytes).find_map(|offset| {
        // SAFETY: by the contract.
        let (found, expected) = (unsafe { at.add(offset).read() }, redzone(at as usize + offset, secret));
        (found != expected).then_some(Wrong { offset, found, expected })
    })
}

/// # Safety
/// The bytes are the caller's.
pub unsafe fn fill_redzone(at: *mut u8, bytes: usize, secret: u64) {
    for offset in 0..bytes {
        // SAFETY: by the contract.
        unsafe { at.add(offset).write(redzone(at as usize + offset, secret)) };
    }
}

fn byte(word: u32, i: usize) -> u8 {
    word.to_ne_bytes()[i % 4]
}

pub fn is_made_of(value: usize, word: u32) -> bool {
    const NEAR: usize = 1 << 16;
    let twice = (word as usize) << 32 | word as usize;
    (0..4).any(|n| value.wrapping_sub(twice.rotate_left(8 * n)).wrapping_add(NEAR) < 2 * NEAR) || value == word as usize
}

#[cfg(test)]
mod tests;
