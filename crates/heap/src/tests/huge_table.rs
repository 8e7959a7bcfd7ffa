use crate::Misuse;
use crate::huge::{Entry, HugeTable};
use craton_sim::{Rng, SimSystem};
use std::collections::BTreeMap;

#[test]
fn the_table_agrees_with_a_map() {
    let system = SimSystem::default();
    let (mut table, mut model, mut rng) = (HugeTable::EMPTY, BTreeMap::new(), Rng::new(7));
    for _ in 0..60_000 {
        // Few addresses, so that probes collide.
        let at = (1 + rng.below(2000) as usize) << 21;
        if rng.below(5) < 3 {
            model.entry(at).or_insert_with(|| {
                table.prepare(&system).unwrap();
                table.insert(Entry { at, bytes: 1 << 20 });
                1usize << 20
            });
        } else {
            assert_eq!(table.remove(at).map(|e| e.bytes), model.remove(&at));
        }
        let probe = (1 + rng.below(2000) as usize) << 21;
        assert_eq!(table.find(probe).map(|e| e.bytes), model.get(&probe).copied());
        let inside = probe + (1 << 19);
        assert_eq!(table.around(inside).map(|e| e.at), model.get(&probe).map(|_| probe));
    }
}

#[test]
fn what_was_freed_last_is_told_from_what_never_was_there() {
    let mut table = HugeTable::EMPTY;
    let entry = |i: usize| Entry { at: (i + 1) << 26, bytes: 40 << 20 };
    assert_eq!(table.misuse(0), Misuse::Foreign);
    for i in 0..40 {
        table.note_gone(entry(i));
    }
    table.prepare(&SimSystem::default()).unwrap();
    for i in 0..40 {
        let Entry { at, bytes } = entry(i);
        let remembered = i >= 8;
        assert_eq!(table.misuse(at), if remembered { Misuse::Freed { size: bytes } } else { Misuse::Foreign }, "{i}");
        assert_eq!(table.misuse(at + bytes - 1), if remembered { Misuse::Unallocated } else { Misuse::Foreign });
        assert_eq!(table.misuse(at + bytes), Misuse::Foreign);
    }
    // It takes no other one's place.
    (0..100).for_each(|_| table.note_gone(Entry { bytes: 1 << 20, ..entry(20) }));
    assert_eq!(table.misuse(entry(20).at), Misuse::Freed { size: 1 << 20 });
    assert_eq!(table.misuse(entry(8).at), Misuse::Freed { size: 40 << 20 });
}
