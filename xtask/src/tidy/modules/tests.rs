use super::*;

fn crate_of(sources: &[(&str, &str)]) -> Vec<File> {
    sources.iter().map(|(name, text)| File::new(&format!("crates/x/src/{name}.rs"), text)).collect()
}

/// As `from>to`.
fn arrows(sources: &[(&str, &str)]) -> Vec<String> {
    let files = crate_of(sources);
    let units = units(&files);
    let unit = &units[0];
    let name = |i: usize| unit.modules[i].path.join("::");
    let all = (0..unit.modules.len()).flat_map(|i| unit.arrows_of(i).into_iter().map(move |j| (i, j)));
    all.map(|(i, j)| format!("{}>{}", name(i), name(j))).collect()
}

fn ring(n: usize) -> Vec<File> {
    let text = |i: usize| format!("use crate::m{0}::A{0};\n", (i + 1) % n);
    let mods: String = (0..n).map(|i| format!("mod m{i};\n")).collect();
    let files = (0..n).map(|i| File::new(&format!("crates/x/src/m{i}.rs"), &text(i)));
    files.chain([File::new("crates/x/src/lib.rs", &mods)]).collect()
}

#[test]
fn paths_and_imports_are_arrows() {
    let lib = ("lib", "mod a;\nmod b;\n");
    for text in [
        "use crate::b::B;\n",
        "use super::b::B;\n",
        "use crate::{b::{B, C}};\n",
        "use crate::b;\nfn f() { b::g() }\n",
        "fn f() { crate::b::g() }\n",
        "fn f(x: super::b::B) {}\n",
        "use crate::b::{self, B};\n",
        "use crate::b::B as D;\n",
        "pub use crate::b::B;\nfn f(b: B) {}\n",
        "mod inner { use super::super::b::B; }\n",
        "mod inner { mod deep { fn f() { self::super::super::super::b::g() } } }\n",
    ] {
        assert_eq!(arrows(&[("a", text), ("b", ""), lib]), ["a>b"], "{text}");
    }
}

#[test]
fn tests_doors_strings_and_other_crates_are_no_arrows() {
    for text in [
        "#[cfg(test)]\nmod tests { use crate::b::B; fn f() { crate::b::g() } }\n",
        "pub use crate::b::B;\n",
        "// crate::b::B\nconst A: &str = \"crate::b::B\";\n",
        "use core::b::B;\nuse b_of_another_crate::B;\n",
        "use crate::b;\n",
        "struct A;\nmod inner { use super::{A, b}; fn f() { super::g() } }\n",
    ] {
        assert_eq!(arrows(&[("a", text), ("b", ""), ("lib", "")]), [""; 0], "{text}");
    }
}

#[test]
fn a_name_is_followed_through_doors_to_its_file() {
    let door = ("lib", "mod a;\nmod b;\npub use b::B;\n");
    assert_eq!(arrows(&[("a", "use crate::B;\n"), ("b", ""), door]), ["a>b"]);
    let below = ("b", "mod c;\npub use c::*;\npub(crate) use self::c::C;\n");
    assert_eq!(arrows(&[("a", "use crate::b::C;\n"), below, ("b/c", ""), ("lib", "")]), ["a>b::c"]);
    assert_eq!(
        arrows(&[("a", "use crate::b;\nfn f() { b::c::g() }\n"), ("b", "mod c;"), ("b/c", ""), ("lib", "")]),
        ["a>b::c"]
    );
    assert_eq!(arrows(&[("a", "use crate::Own;\n"), ("lib", "mod a;\npub struct Own;\n")]), ["a>"]);
}

#[test]
fn a_circle_of_more_than_eight_files_fails_and_names_them() {
    assert_eq!(check(&ring(MOST)), []);
    let found = check(&ring(MOST + 1));
    assert!(found.len() == 1 && found[0].text.starts_with("a circle of 9 files") && found[0].text.contains("m8.rs"));
}

#[test]
fn a_file_that_nothing_declares_fails() {
    let lib = "mod b;\n// mod a;\n#[cfg_attr(unix, path = \"d/e.rs\")]\nmod e;\n";
    let found = check(&crate_of(&[("a", ""), ("b", "mod c;\n"), ("b/c", ""), ("d/e", ""), ("lib", lib)]));
    assert!(found.len() == 1 && found[0].path == "crates/x/src/a.rs", "{found:?}");
}

#[test]
fn an_arrow_against_the_order_fails() {
    let layer = |name: &str, text: &str| File::new(&format!("crates/heap/src/{name}.rs"), text);
    let files = |low: &str, high: &str| {
        [layer("lib", "mod mark;\nmod heap;\npub struct Root;\n"), layer("mark", low), layer("heap", high)]
    };
    let upward = |low: &str, high: &str| {
        let found = check(&files(low, high)).into_iter().map(|c| c.text);
        found.filter(|text| text.contains("is no layer before it")).collect::<Vec<_>>()
    };
    assert_eq!(upward("", "use crate::mark::M;\n"), [""; 0]);
    for low in ["use crate::heap::H;\n", "use crate::Root;\n", "mod inner { use super::super::heap::H; }\n"] {
        let found = upward(low, "");
        assert!(found.len() == 1 && found[0].starts_with("mark.rs names "), "{found:?}");
    }
}

#[test]
fn a_file_without_a_layer_and_a_layer_without_a_file_fail() {
    let files = [
        File::new("crates/heap/src/lib.rs", "mod mark;\nmod fresh;\n"),
        File::new("crates/heap/src/mark.rs", ""),
        File::new("crates/heap/src/fresh.rs", "use crate::mark::M;\n"),
    ];
    let found: Vec<String> = check(&files).iter().map(ToString::to_string).collect();
    assert!(found.iter().any(|text| text.starts_with("crates/heap/src/fresh.rs: in no layer")), "{found:?}");
    assert!(found.iter().any(|text| text.contains("no module is spans")), "{found:?}");
    assert!(!found.iter().any(|text| text.contains("no module is mark") || text.contains("src/mark.rs")), "{found:?}");
}

#[test]
fn the_files_of_a_crate_are_listed_from_the_bottom_up() {
    let files = crate_of(&[("a", "use crate::b::B;\n"), ("b", "use crate::c::C;\n"), ("c", ""), ("lib", "")]);
    assert_eq!(write_one(&files, "x"), Ok("c: \n: \nb: c\na: b\n".to_owned()));
    assert_eq!(write_one(&files, "y"), Err("there is no crate y; there are: x".to_owned()));
}

#[test]
fn programs_are_apart_and_models_are_left_out() {
    let files = [
        File::new("crates/x/src/bin/p/main.rs", "mod a;\n"),
        File::new("crates/x/src/bin/p/a.rs", ""),
        File::new("crates/x/src/lib.rs", "#[cfg(loom)]\nmod model;\n"),
        File::new("crates/x/src/model.rs", "use crate::model::world::W;\n"),
        File::new("crates/x/src/model/world.rs", ""),
    ];
    let units: Vec<_> = units(&files).into_iter().map(|u| (u.name, u.modules.len())).collect();
    assert_eq!(units, [("x".to_owned(), 1), ("x/p".to_owned(), 2)]);
}

#[test]
fn no_order_has_a_module_twice() {
    for (name, order) in ORDERS {
        let set: BTreeSet<_> = order.split_whitespace().collect();
        assert_eq!(set.len(), order.split_whitespace().count(), "{name}");
    }
}
