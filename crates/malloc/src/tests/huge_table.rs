use crate::huge::{Entry, HugeTable};
use craton_sim::Rng;
use std::collections::BTreeMap;

#[test]
fn the_table_agrees_with_a_map() {
    let (mut table, mut model, mut rng) = (HugeTable::EMPTY, BTreeMap::new(), Rng::new(7));
    for _ in 0..60_000 {
        // Few different addresses, so that probes collide and gaps are closed over each other.
        let at = (1 + rng.below(2000) as usize) << 21;
        if rng.below(5) < 3 {
            model.entry(at).or_insert_with(|| {
                table.prepare().unwrap();
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
