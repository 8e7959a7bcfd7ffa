use super::demangled;

#[test]
fn both_languages_are_known() {
    assert_eq!(demangled("_Z3puti"), "put(int)");
    assert_eq!(demangled("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE"), "core::fmt::Write::write_fmt");
    assert_eq!(demangled("_ZTV3Foo"), "vtable for Foo");
    for name in ["main", "i", "Pc"] {
        assert_eq!(demangled(name), name);
    }
}
