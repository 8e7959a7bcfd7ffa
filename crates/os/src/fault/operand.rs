//! The operand of a call or jump through memory (Intel manual, volume 2, §2.1).

const RSP: usize = 4;
const RBP: usize = 5;

/// `None`: neither `call [m]` nor `jmp [m]`, or relative to the instruction or a segment.
pub(super) fn of_jump(byte: impl Fn(usize) -> u8, register: impl Fn(usize) -> usize) -> Option<usize> {
    let mut at = 0;
    let mut next = || {
        at += 1;
        byte(at - 1)
    };
    let mut opcode = next();
    // `notrack`.
    if opcode == 0x3e {
        opcode = next();
    }
    let rex = if opcode & 0xf0 == 0x40 { core::mem::replace(&mut opcode, next()) } else { 0 };
    if opcode != 0xff {
        return None;
    }
    let modrm = next();
    let (mode, kind, base) = (modrm >> 6, modrm >> 3 & 7, usize::from(modrm & 7));
    if mode == 3 || !matches!(kind, 2 | 4) {
        return None;
    }
    let high = |bit: u8| usize::from(rex >> bit & 1) << 3;
    let mut address = if base == RSP {
        let sib = next();
        let (scale, index, base) = (sib >> 6, usize::from(sib >> 3 & 7) | high(1), usize::from(sib & 7));
        let scaled = if index == RSP { 0 } else { register(index).wrapping_shl(scale.into()) };
        if base == RBP && mode == 0 {
            let low = [next(), next(), next(), next()];
            return Some(scaled.wrapping_add(i32::from_le_bytes(low) as usize));
        }
        register(base | high(0)).wrapping_add(scaled)
    } else if base == RBP && mode == 0 {
        return None;
    } else {
        register(base | high(0))
    };
    if mode == 1 {
        address = address.wrapping_add(next() as i8 as usize);
    } else if mode == 2 {
        let low = [next(), next(), next(), next()];
        address = address.wrapping_add(i32::from_le_bytes(low) as usize);
    }
    Some(address)
}

#[cfg(all(test, not(loom)))]
mod tests;
