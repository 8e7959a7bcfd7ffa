use super::*;

const CODE: &str = "
x.so:     file format elf64-x86-64

000000000000bef0 <first>:
    bef0:\tcmp    rdi,0x401
    bef7:\tjae    1cd10 <_ZN5craty5front6beyond17h9239e214aad011f0E>
    befd:\tmov    rcx,QWORD PTR [rip+0x18389]        # 242a0 <_DYNAMIC+0x1d8>
    bf05:\tlea    rax,[rip+0xffffffffffff9c39]        # 5b45 <_ZN10size_class5TABLE17h5ff574fbc4b591aaE>
    bf0c:\tje     bf20 <first+0x30>
    bf10:\tlock inc DWORD PTR [rcx+0x14]
    bf18:\tret
    bf20:\txor    eax,eax
    bf22:\tjmp    bf18 <first+0x28>
    bf24:\tint3
    bf25:\tcs nop WORD PTR [rax+rax*1+0x0]

000000000000bf30 <second>:
    bf30:\tjmp    QWORD PTR [rip+0x18847]        # 242a8 <memset@GLIBC_2.2.5>
";

#[test]
fn a_listing_has_names_and_labels_instead_of_addresses() {
    let text = text(&function(CODE, 0xbef0));
    let expected = "    cmp     rdi,0x401
    jae     <craty::front::beyond>
    mov     rcx,QWORD PTR [rip]
    lea     rax,[rip size_class::TABLE]
    je      L2
    lock inc DWORD PTR [rcx+0x14]
L1:
    ret
L2:
    xor     eax,eax
    jmp     L1
";
    assert_eq!(text, expected);
}

#[test]
fn the_same_code_elsewhere_has_the_same_listing() {
    let moved =
        CODE.replace("    bf", "    cf").replace("bf20", "cf20").replace("bf18", "cf18").replace("    bef", "    cef");
    let moved = moved.replace("0xffffffffffff9c39", "0x77").replace("17h5ff574", "17h000000");
    assert_eq!(text(&function(&moved, 0xbef0)), text(&function(CODE, 0xbef0)));
}

#[test]
fn the_straight_path_takes_no_conditional_jump_and_ends_where_the_function_is_left() {
    assert_eq!(straight(&function(CODE, 0xbef0)), 7);
    assert_eq!(straight(&function(CODE, 0xbf30)), 1);
    let round = "0000000000000010 <round>:\n  10:\tinc eax\n  12:\tjmp    10 <round>\n";
    assert_eq!(straight(&function(round, 0x10)), 2);
}

#[test]
fn symbols_are_found_with_and_without_a_version() {
    let names = "000000000000bef0 T malloc@@CRATON\n000000000000bf30 T free\n                 U memset\n";
    assert_eq!((address(names, "malloc"), address(names, "free")), (Some(0xbef0), Some(0xbf30)));
    assert_eq!(address(names, "calloc"), None);
}

#[test]
fn a_difference_is_shown_function_by_function() {
    let old = "# head\n\nmalloc: 2\n    x\n    ret\n\nfree: 3\n    a\n    b\n    ret\n";
    assert_eq!(difference(old, old), None);
    let new = old.replace("free: 3", "free: 4").replace("    b\n", "    push\n    b2\n");
    let expected = "- free: 3\n+ free: 4\n      a\n-     b\n+     push\n+     b2\n";
    assert_eq!(difference(old, &new).as_deref(), Some(expected));
    assert!(difference(old, "# head\n\nmalloc: 2\n    x\n    ret\n").is_some_and(|text| text.contains("- free: 3")));
}
