use super::*;

fn line(allocator: &str, turn: u64, get_ns: u64, free_huge: u64) -> Row {
    json!({"allocator": allocator, "step": "memcached", "turn": turn, "phase": "full", "sets": 0, "set_ns": 0,
        "gets": 4, "hits": 3, "get_ns": get_ns, "free_frames": 10 * FRAMES_OF_HUGE + 7, "free_huge": free_huge})
}

#[test]
fn turns_become_instructions_for_a_request_and_huge_frames() {
    let lines = [json!({"step": "counters"}), line("buddy", 0, 4000, 2), line("craton", 0, 3000, 6)];
    let rows = rows(&lines);
    assert_eq!(rows.len(), 2);
    assert_eq!((rows[0].num("get"), rows[0].num("hits")), (1000.0, 0.75));
    assert!(rows[0]["set"].is_null());
    assert_eq!((rows[1].int("possible_huge"), rows[1].int("split_huge")), (10, 4));
    let ratios = ratios(&rows);
    assert!((ratios["full_get_instructions_vs_buddy"] - 0.75).abs() < 1e-9, "{ratios:?}");
    assert!((ratios["full_split_huge_vs_buddy"] - 0.5).abs() < 1e-9, "{ratios:?}");
    assert!(!ratios.contains_key("full_set_instructions_vs_buddy"));
}

#[test]
fn turns_without_a_split_huge_frame_have_no_ratio() {
    let rows = rows(&[line("buddy", 0, 4000, 2), line("craton", 0, 4000, 11)]);
    assert_eq!(rows[1].int("split_huge"), 0);
    assert!(!ratios(&rows).contains_key("full_split_huge_vs_buddy"));
}

#[test]
fn orders_are_those_between_the_first_count_and_the_last() {
    let count = |order: u64, get: u64| json!({"step": "counters", "allocator": "craton", "order": order, "get": get});
    let said = [
        json!({"step": "counters", "allocator": "buddy", "page_frames": false}),
        count(0, 100),
        count(2, 5),
        json!({"step": "memcached"}),
        count(0, 190),
        count(1, 10),
        count(2, 5),
    ];
    let rows = orders(&said);
    let found: Vec<(u64, u64)> = rows.iter().map(|row| (row.int("order"), row.int("requests"))).collect();
    assert_eq!(found, [(0, 90), (1, 10)]);
    assert_eq!(rows[0].num("part"), 0.9);
}
