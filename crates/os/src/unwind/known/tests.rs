use super::*;

fn module(start: usize, end: usize, frames: usize) -> Module {
    Module { start, end, frames, record: 7 }
}

#[test]
fn a_module_where_another_lay_is_noticed_once() {
    static KNOWN: Known = Known::new();
    let (a, b) = (module(0x1000, 0x3000, 0x2000), module(0x3000, 0x5000, 0x4000));
    assert!(!KNOWN.record(a) && !KNOWN.record(b), "side by side");
    assert!(!KNOWN.record(a) && !KNOWN.record(b), "again");
    let other = module(0x2000, 0x3000, 0x2800);
    assert!(KNOWN.record(other) && !KNOWN.record(other) && !KNOWN.record(b));
    assert!(KNOWN.record(Module { record: 8, ..b }), "loaded anew at the same place");
    assert!(KNOWN.record(module(0, 0x10000, 1)), "over all of them");
    assert!(KNOWN.record(a), "and gone again");
}

#[test]
fn more_modules_than_there_are_places_cost_rules_and_nothing_else() {
    static KNOWN: Known = Known::new();
    let all = |i: usize| module(i << 20, (i + 1) << 20, i);
    for i in 1..=PLACES {
        assert!(!KNOWN.record(all(i)), "{i}");
    }
    assert!(KNOWN.record(all(PLACES + 1)));
    assert!(!KNOWN.record(all(PLACES + 1)) && KNOWN.record(all(1)));
}
