use super::*;
use craton_lab::picture::colour;

#[test]
fn waste_is_counted_by_hand_for_a_size_of_each_kind() {
    // 100 B in 112: 73 of them in a page; 300,000 B in 37 pages.
    let profile = Profile::parse("100, 1, 73\n300000, 1, 1\n", "p").expect("good");
    let row = measure("craton", &library(), "p", &profile);
    assert_eq!((row.int("requested_bytes"), row.int("taken_bytes")), (7300 + 300_000, 8192 + 37 * 8192));
    let taken = 38.0 * 8192.0;
    assert!((row.num("rounding") - 73.0 * 12.0 / taken).abs() < 1e-9 && (row.num("tail") - 16.0 / taken).abs() < 1e-9);
    assert!((row.num("waste") - (row.num("rounding") + row.num("tail") + row.num("pages"))).abs() < 1e-9);
}

#[test]
fn the_librarys_table_wastes_an_eighth_at_the_most_and_less_than_even_steps_do() {
    // Equal bytes in each doubling.
    let sizes: String =
        (129..32_000).step_by(7).map(|size| format!("{size}, 1, {}\n", 1e9 / (size * size) as f64)).collect();
    let profile = Profile::parse(&sizes, "every size").expect("good");
    let [ours, eighths, ..] = RULES.map(|rule| measure(rule.name, &(rule.classes)(), "every size", &profile));
    assert!(ours.num("worst_waste") <= 0.125, "{} at {}", ours.num("worst_waste"), ours.int("worst_bytes"));
    assert!(eighths.num("worst_waste") > 0.125 && ours.int("classes") <= eighths.int("classes"));
    assert!(
        ours.num("waste") < eighths.num("waste") && ours.num("waste") < 0.08,
        "{} and {}",
        ours.num("waste"),
        eighths.num("waste")
    );
}

#[test]
fn rules_can_be_told_apart_in_the_picture() {
    let colours: std::collections::BTreeSet<_> = RULES.iter().map(|rule| colour::of(&series(rule))).collect();
    assert_eq!(colours.len(), RULES.len());
}

#[test]
fn every_table_ascends_to_the_same_size() {
    for rule in &RULES {
        let classes = (rule.classes)();
        assert!(classes.windows(2).all(|pair| pair[0].object < pair[1].object), "{}", rule.name);
        assert_eq!(classes.last().map(|class| class.object), Some(LARGEST), "{}", rule.name);
        assert!(classes.iter().all(|class| class.taken() >= class.object as f64));
    }
}
