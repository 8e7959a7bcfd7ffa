use super::*;

fn module(start: usize, end: usize, frames: usize) -> Module {
    Module { start, end, frames, record: 7 }
}

#[test]
fn a_module_where_another_lay_is_noticed_once() {
    static KNOWN: Known = Known::new();
    let (a, b) = (module(0x1000, 0x3000, 0x2000), module(0x3000, 0x5000, 0x4000));
    assert!(!KNOWN.meet(a) && !KNOWN.meet(b), "side by side");
    assert!(!KNOWN.meet(a) && !KNOWN.meet(b), "again");
    let other = module(0x2000, 0x3000, 0x2800);
    assert!(KNOWN.meet(other) && !KNOWN.meet(other) && !KNOWN.meet(b));
    assert!(KNOWN.meet(Module { record: 8, ..b }), "loaded anew at the same place");
    assert!(KNOWN.meet(module(0, 0x10000, 1)), "over all of them");
    assert!(KNOWN.meet(a), "and gone again");
}

#[test]
fn more_modules_than_there_are_places_cost_rules_and_nothing_else() {
    static KNOWN: Known = Known::new();
    let all = |i: usize| module(i << 20, (i + 1) << 20, i);
    for i in 1..=PLACES {
        assert!(!KNOWN.meet(all(i)), "{i}");
    }
    assert!(KNOWN.meet(all(PLACES + 1)));
    assert!(!KNOWN.meet(all(PLACES + 1)) && KNOWN.meet(all(1)));
}
