//! The operand of a call or jump through memory (Intel manual, volume 2, §2.1: prefix, opcode,
//! ModR/M, SIB, displacement).

const RSP: usize = 4;
const RBP: usize = 5;

/// The operand's address in `call [m]` or `jmp [m]`, from code bytes and registers (CPU numbers);
/// `None` for other instructions, and for operands relative to the instruction or a segment.
pub(super) fn of_jump(byte: impl Fn(usize) -> u8, register: impl Fn(usize) -> usize) -> Option<usize> {
    let mut at = 0;
    let mut next = || {
        at += 1;
        byte(at - 1)
    };
    let mut opcode = next();
    // A `notrack` prefix of indirect jumps.
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
mod tests {
    use super::*;

    /// The operand of `bytes` where register n holds 0x1000 × (n + 1); panics past their end.
    fn of(bytes: &[u8]) -> Option<usize> {
        of_jump(|i| bytes[i], |n| 0x1000 * (n + 1))
    }

    #[test]
    fn operands_are_those_of_the_manual() {
        assert_eq!(of(&[0xff, 0x10]), Some(0x1000), "call [rax]");
        assert_eq!(of(&[0xff, 0x50, 0x18]), Some(0x1018), "call [rax+0x18]");
        assert_eq!(of(&[0xff, 0x63, 0xf8]), Some(0x3ff8), "jmp [rbx-8]");
        assert_eq!(of(&[0xff, 0x95, 0, 1, 0, 0]), Some(0x6100), "call [rbp+0x100]");
        assert_eq!(of(&[0x41, 0xff, 0x14, 0x24]), Some(0xd000), "call [r12]");
        assert_eq!(of(&[0x41, 0xff, 0x55, 0]), Some(0xe000), "call [r13]");
        assert_eq!(of(&[0xff, 0x54, 0xc8, 8]), Some(0x1008 + 8 * 0x2000), "call [rax+rcx*8+8]");
        assert_eq!(of(&[0x42, 0xff, 0x14, 0xc5, 0x10, 0, 0, 0]), Some(8 * 0x9000 + 0x10), "call [r8*8+0x10]");
        assert_eq!(of(&[0x42, 0xff, 0x14, 0x20]), Some(0x1000 + 0xd000), "call [rax+r12]");
        assert_eq!(of(&[0x3e, 0xff, 0x20]), Some(0x1000), "notrack jmp [rax]");
        assert_eq!(of(&[0xff, 0x24, 0x24]), Some(0x5000), "jmp [rsp]");
    }

    #[test]
    fn what_is_no_such_instruction_has_none() {
        assert_eq!(of(&[0xff, 0xd0]), None, "call rax");
        assert_eq!(of(&[0xff, 0x15]), None, "call [rip+…]");
        assert_eq!(of(&[0xff, 0x30]), None, "push [rax]");
        assert_eq!(of(&[0x48, 0x8b]), None, "mov");
        assert_eq!(of(&[0x64, 0xff]), None, "call fs:[…]");
    }
}
