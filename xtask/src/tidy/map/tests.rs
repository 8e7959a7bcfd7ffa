use super::*;

fn graph(text: &str) -> Graph {
    let crates = text.split_whitespace().map(|word| word.split_once(':').unwrap());
    crates.map(|(name, uses)| (name.to_owned(), uses.split_terminator(',').map(str::to_owned).collect())).collect()
}

#[test]
fn users_stand_above_what_they_use_and_implied_arrows_are_left_out() {
    let graph = graph("base: heap:base,os os:base malloc:heap,base cli:base");
    let drawing = "\
malloc ──●
heap   ──▼──●
cli    ─────┼──●
os     ─────▼──●
base   ────────▼
";
    assert_eq!(draw(&graph), drawing);
}

#[test]
fn dependencies_of_tests_and_of_models_are_no_arrows() {
    let mut graph = Graph::new();
    let metadata = r#"{"packages": [{"name": "craton-heap", "dependencies": [
        {"name": "craton-base", "kind": null, "target": null, "path": "/x"},
        {"name": "craton-sim", "kind": "dev", "target": null, "path": "/x"},
        {"name": "loom", "kind": null, "target": "cfg(loom)"},
        {"name": "libc", "kind": null, "target": null}
    ]}]}"#;
    add(&mut graph, metadata).unwrap();
    assert_eq!(graph, self::graph("heap:base"));
}
