use super::*;

fn complaints(text: &str) -> usize {
    check("crates/x/src/a.rs", &Source::new(text)).len()
}

fn kinds(text: &str) -> Vec<Site> {
    sites(&Source::new(text)).into_iter().map(|(_, site)| site).collect()
}

#[test]
fn each_kind_of_site_is_found() {
    let text = "unsafe impl A for B {}\nunsafe trait T {}\nunsafe extern \"C\" { fn f(); }\n#[unsafe(no_mangle)]\n\
                pub unsafe extern \"C\" fn g() { unsafe { f() } }";
    let own = Site::Fn { contract_elsewhere: false };
    assert_eq!(kinds(text), [Site::Impl, Site::Trait, Site::Extern, Site::Attribute, own, Site::Block]);
}

#[test]
fn a_function_type_a_string_and_a_comment_are_no_sites() {
    assert_eq!(
        kinds("type F = unsafe extern \"C\" fn(u8); // unsafe { }\nlet x = \"unsafe { }\"; let g: unsafe fn() = y;"),
        []
    );
}

#[test]
fn a_block_without_a_reason_fails() {
    assert_eq!(complaints("fn f() {\n    unsafe { g() }\n}"), 1);
    assert_eq!(complaints("fn f() {\n    // SAFETY: g has no contract.\n    unsafe { g() }\n}"), 0);
    assert_eq!(complaints("fn f() {\n    unsafe { g() } // SAFETY: g has no contract.\n}"), 0);
}

#[test]
fn an_empty_reason_fails() {
    assert_eq!(complaints("fn f() {\n    // SAFETY:\n    unsafe { g() }\n}"), 1);
}

#[test]
fn a_reason_serves_one_statement_only() {
    let two = "fn f() {\n    // SAFETY: fine.\n    unsafe { g() };\n    unsafe { h() };\n}";
    assert_eq!(complaints(two), 1);
    let arms = "match x {\n    // SAFETY: fine.\n    A => unsafe { g() },\n    B => unsafe { h() },\n}";
    assert_eq!(complaints(arms), 1);
    let behind = "fn f() {\n    let a = 1; // SAFETY: of something else.\n    unsafe { g() };\n}";
    assert_eq!(complaints(behind), 1);
}

#[test]
fn a_blank_line_parts_the_reason_from_the_block() {
    assert_eq!(complaints("// SAFETY: fine.\n\nunsafe impl A for B {}"), 1);
}

#[test]
fn a_reason_above_the_statement_serves_a_block_inside_it() {
    assert_eq!(
        complaints(
            "fn f() {\n    // SAFETY: fine,\n    // and so on.\n    let a = call(\n        1,\n        unsafe { g() },\n    );\n}"
        ),
        0
    );
    assert_eq!(complaints("// SAFETY: fine.\n#[cfg(\n    unix\n)]\nunsafe impl A for B {}"), 0);
}

#[test]
fn a_block_in_a_macro_is_seen() {
    assert_eq!(complaints("macro_rules! m {\n    ($e:expr) => {\n        unsafe { $e }\n    };\n}"), 1);
}

#[test]
fn an_impl_and_an_extern_block_without_a_reason_fail() {
    assert_eq!(complaints("unsafe impl Send for A {}"), 1);
    assert_eq!(complaints("unsafe extern \"C\" {\n    fn f();\n}"), 1);
}

#[test]
fn a_function_or_trait_without_a_contract_fails() {
    assert_eq!(complaints("/// Does.\npub unsafe fn f() {}"), 1);
    assert_eq!(complaints("/// Does.\n///\n/// # Safety\n/// `x` is ours.\n#[inline]\npub unsafe fn f() {}"), 0);
    assert_eq!(complaints("/// # Safety\n/// Of g.\nfn g() {}\nunsafe fn f() {}"), 1);
    assert_eq!(complaints("unsafe trait T {}"), 1);
    assert_eq!(complaints("macro_rules! m { () => {\n    $(#[$doc])*\n    pub unsafe fn f() {}\n} }"), 0);
}

#[test]
fn a_contract_stated_by_a_trait_or_a_header_is_not_asked_for_again() {
    let gives = "// SAFETY: fine.\nunsafe impl<'a> T for A<'a> {\n    unsafe fn f() {}\n}";
    assert_eq!(complaints(gives), 0);
    let own = "impl A {\n    unsafe fn f() {}\n}";
    assert_eq!(complaints(own), 1);
    let header = "// SAFETY: as in the manual.\nunsafe extern \"C\" {\n    pub unsafe fn f();\n}\nunsafe fn g() {}";
    assert_eq!(complaints(header), 1);
    let higher_ranked = "impl<F: for<'a> Fn(&'a u8)> A<F> {\n    unsafe fn f() {}\n}";
    assert_eq!(complaints(higher_ranked), 1);
}
