use super::*;

#[test]
fn the_longer_the_interval_the_more_is_kept_and_the_less_a_spike_costs() {
    let all: Vec<Vec<Row>> = INTERVALS.iter().map(|(name, ns)| play(name, *ns, SPIKE).expect("room")).collect();
    let spike = |rows: &[Row], second| rows.iter().find(|row| row.int("second") == second).expect("there").clone();
    for (rows, [again, late]) in all.iter().zip([[true, true], [false, true], [false, false]]) {
        assert!(spike(rows, SPIKES[0]).int("slabs_made") > 0);
        assert_eq!(spike(rows, SPIKES[1]).int("slabs_made") > 5, again, "{}", rows[0].word("interval"));
        assert_eq!(spike(rows, SPIKES[6]).int("slabs_made") > 5, late, "{}", rows[0].word("interval"));
    }
    let after = |rows: &[Row], second| spike(rows, SPIKES[6] + second).int("memory_bytes");
    assert!(after(&all[0], 1) < after(&all[1], 1) && after(&all[1], 1) == after(&all[2], 1));
    assert!(after(&all[1], 60) < after(&all[2], 60) / 2);
}

#[test]
fn what_is_destroyed_was_constructed_once() {
    for (name, ns) in INTERVALS {
        let rows = play(name, ns, SPIKE).expect("room");
        let [constructed, destroyed] = [
            rows.iter().map(|row| row.int("constructed")).sum::<u64>(),
            rows.iter().map(|row| row.int("destroyed")).sum(),
        ];
        assert!(
            constructed >= destroyed && constructed - destroyed >= (SPIKE / STEADY) as u64,
            "{name}: {constructed}, {destroyed}"
        );
    }
}
