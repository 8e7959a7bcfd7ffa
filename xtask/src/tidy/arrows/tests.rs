use super::*;

fn with_arrow(from: &str, to: &str, kind: &str) -> Vec<Complaint> {
    check(&format!(r#"{{"packages":[{{"name":"{from}","dependencies":[{{"name":"{to}","kind":{kind}}}]}}]}}"#))
        .expect("the sample is JSON")
}

#[test]
fn an_arrow_that_points_up_or_aside_fails_and_is_named() {
    for (from, to) in [
        ("craton-base", "craton-os"),
        ("craton-pages", "craton-slab"),
        ("craton-slab", "craton-malloc"),
        ("craton-malloc", "craton-sim"),
        ("craton-cli", "craton-malloc"),
        ("craton-lab", "craton-malloc"),
        ("craton-lab", "craton"),
    ] {
        let found = with_arrow(from, to, "null");
        assert!(found.len() == 1 && found[0].text.contains(&format!("{from} → {to}")), "{found:?}");
        assert!(found[0].text.contains("may name: "), "{found:?}");
    }
}

#[test]
fn an_arrow_down_passes() {
    for (from, to) in [("craton-os", "craton-base"), ("craton-malloc", "craton-slab"), ("craton-cli", "craton-lab")] {
        assert_eq!(with_arrow(from, to, "null"), [], "{from} → {to}");
    }
}

#[test]
fn the_core_takes_from_elsewhere_only_what_is_named_and_the_tools_any() {
    assert_eq!(with_arrow("craton-malloc", "libc", "null").len(), 1);
    assert_eq!(with_arrow("craton-os", "libc", "null"), []);
    assert_eq!(with_arrow("craton-os", "rustix", "null").len(), 1);
    assert_eq!(with_arrow("craton-malloc", "cc", "\"build\"").len(), 1);
    assert_eq!(with_arrow("craton-lab", "serde_json", "null"), []);
}

#[test]
fn development_dependencies_are_free() {
    assert_eq!(with_arrow("craton-pages", "craton-sim", "\"dev\""), []);
    assert_eq!(with_arrow("craton-pages", "proptest", "\"dev\""), []);
}

#[test]
fn what_only_models_are_built_with_is_free() {
    let with = |target| {
        let arrow = format!(r#"{{"name":"loom","kind":null,"target":"{target}"}}"#);
        check(&format!(r#"{{"packages":[{{"name":"craton-base","dependencies":[{arrow}]}}]}}"#)).expect("JSON")
    };
    assert_eq!(with("cfg(loom)"), []);
    assert_eq!(with("cfg(unix)").len(), 1);
}

#[test]
fn a_package_that_the_house_does_not_know_fails() {
    let found = check(r#"{"packages":[{"name":"stranger","dependencies":[]}]}"#).expect("the sample is JSON");
    assert!(found.len() == 1 && found[0].path == "package stranger", "{found:?}");
}

#[test]
fn what_is_not_metadata_is_an_error() {
    assert!(check("").is_err());
    assert!(check("{}").is_err());
}

#[test]
fn no_arrow_of_the_order_points_up() {
    for (i, package) in CRATES.iter().enumerate() {
        for to in package.below {
            assert!(CRATES[..i].iter().any(|c| c.name == *to), "{} → {to}", package.name);
        }
    }
}
