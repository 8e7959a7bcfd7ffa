use super::*;

fn load(percent: u64) -> Load {
    Load { threads: 1, percent, seed: 1 }
}

#[test]
fn live_data_stay_within_a_unit_and_come_near_it() {
    for name in ["fragbench-w1", "fragbench-w2", "fragbench-w3", "fragbench-w4"] {
        let outcome = run(row(name).expect("it is one of the four"), &load(1));
        let unit = UNIT / 100;
        assert!(outcome.peak_bytes <= unit && outcome.peak_bytes > unit - 2000, "{name}: {outcome:?}");
        assert!(outcome.end_bytes <= unit && outcome.end_bytes > unit - 4000, "{name}: {outcome:?}");
    }
    assert!(row("server").is_none());
}

#[test]
fn the_peak_is_foretold() {
    for name in NAMES {
        let outcome = run(row(name).expect("it is one of the four"), &load(5));
        let (live, list) = at_peak(name, &load(5)).expect("it is one of the four");
        assert!(live.abs_diff(outcome.peak_bytes) < 2000, "{name}: {live} and {outcome:?}");
        assert!(list <= outcome.list_bytes && list > outcome.list_bytes / 2, "{name}: {list} and {outcome:?}");
    }
    assert_eq!(at_peak("server", &load(5)), None);
}

#[test]
fn delete_frees_the_part_of_the_table() {
    for (row, part) in ROWS.iter().zip([10, 100, 10, 50]) {
        let kept = run(row, &load(1)).kept_bytes;
        let expected = UNIT / 100 * part / 100;
        assert!(kept.abs_diff(expected) < expected / 20, "{kept} bytes of {expected}");
    }
}

#[test]
fn the_list_never_grows() {
    for row in ROWS {
        let mut heap = Heap::new(&row, &load(1));
        let capacity = heap.live.capacity();
        heap.allocate(row.before);
        heap.delete(row.delete);
        heap.allocate(row.after);
        assert_eq!(heap.live.capacity(), capacity);
    }
    assert_eq!(size_of::<Filled>(), 16);
}
