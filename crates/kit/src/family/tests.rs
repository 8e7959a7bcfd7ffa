use super::*;

fn buffer(family: u8) -> Buffer {
    Buffer { address: 0x1000, size: 100, under: 0x0ff0, family, ..Default::default() }
}

#[test]
fn a_buffer_goes_back_by_the_calls_of_its_family_alone() {
    const CALLS: [(&str, bool, u8); 8] = [
        ("free", false, C),
        ("realloc", false, C),
        ("free_sized", false, C),
        ("free_aligned_sized", true, C),
        ("operator delete", false, NEW),
        ("operator delete[]", false, NEW_ARRAY),
        ("operator delete", true, NEW_ALIGNED),
        ("operator delete[]", true, NEW_ARRAY_ALIGNED),
    ];
    for family in [C, NEW, NEW_ARRAY, NEW_ALIGNED, NEW_ARRAY_ALIGNED] {
        for (call, with_align, right) in CALLS {
            let found = check(&buffer(family), call, with_align);
            assert_eq!(found.is_ok(), family == right, "{call} of {family}");
            assert!(found.err().is_none_or(|f| matches!(f.mistake, Mistake::Mismatch { .. })));
        }
    }
}

#[test]
fn what_is_not_known_or_free_is_left_to_other_checks() {
    assert!(check(&buffer(ANY), "free", false).is_ok());
    assert!(check(&buffer(NEW), "craton_free_batch", false).is_ok());
    assert!(check(&Buffer { state: State::Freed, ..buffer(NEW) }, "free", false).is_ok());
}
