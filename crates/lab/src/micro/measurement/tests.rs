use super::*;

fn request(pattern: Pattern, threads: usize) -> Request {
    Request { pattern, size_bytes: 300, threads, count: 500, repetitions: 2, with_loop: Loop::None }
}

#[test]
fn every_pattern_does_at_least_the_operations_asked_for() {
    for pattern in Pattern::ALL {
        let threads = if pattern == Pattern::Remote { 2 } else { 1 };
        let result = measure(&request(pattern, threads));
        let repetitions = if pattern == Pattern::Cold { 1 } else { 3 };
        assert!(result.operations >= 500 * repetitions * threads, "{result:?}");
        assert!(result.ns_min > 0.0 && result.ns_median >= result.ns_min, "{result:?}");
        let parsed = Measurement::parse(&serde_json::to_string(&result).unwrap()).unwrap();
        assert!((parsed.ns_median - result.ns_median).abs() < 1e-6, "{parsed:?} {result:?}");
        let others = Measurement { ns_median: result.ns_median, ns_min: result.ns_min, ..parsed };
        assert_eq!(Measurement { steps: Vec::new(), ..others }, Measurement { steps: Vec::new(), ..result });
    }
}

#[test]
fn threads_share_no_object_and_all_are_counted() {
    for pattern in [Pattern::Pair, Pattern::LiveRandom, Pattern::Remote] {
        let result = measure(&request(pattern, 3));
        assert_eq!((result.threads, result.operations >= 3 * 3 * 500), (3, true), "{result:?}");
    }
}

#[test]
fn enough_is_enough_whatever_was_asked_for() {
    let asked = Request { count: 100_000, repetitions: 10_000, ..request(Pattern::Pair, 3) };
    // All would take seconds.
    let done = measure(&asked).operations;
    assert!((3 * 300_000..10_000 * 300_000).contains(&done) && done.is_multiple_of(300_000), "{done}");
}

#[test]
fn cold_objects_have_steps_at_powers_of_two_which_grow() {
    let result = measure(&request(Pattern::Cold, 1));
    let counts: Vec<usize> = result.steps.iter().map(|s| s.0).collect();
    assert_eq!(counts, [1, 2, 4, 8, 16, 32, 64, 128, 256]);
    assert!(result.steps.is_sorted_by(|a, b| a.1 <= b.1), "{:?}", result.steps);
}

#[test]
fn a_line_that_is_no_result_is_shown() {
    let why = Measurement::parse("Segmentation fault").unwrap_err();
    assert!(why.contains("Segmentation fault"), "{why}");
    let mut empty = measure(&request(Pattern::Pair, 1));
    empty.ns_median = 0.0;
    assert!(Measurement::parse(&serde_json::to_string(&empty).unwrap()).is_err());
}
