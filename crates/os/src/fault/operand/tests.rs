use super::*;

/// Register n holds 0x1000 × (n + 1).
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
