use super::*;

/// Two counts of each form, and of none.
fn counted(name: &'static str, counts: [[Option<u64>; 2]; 4]) -> Counted {
    let names = FORMS.map(|(form, _)| form).into_iter().chain([OFF]);
    let results = |counts: [Option<u64>; 2]| counts.map(|count| count.ok_or("signal 9".to_owned())).to_vec();
    Counted { name, forms: names.map(named).zip(counts.map(results)).collect() }
}

fn alike(counts: [u64; 4]) -> [[Option<u64>; 2]; 4] {
    counts.map(|count| [Some(count); 2])
}

#[test]
fn each_form_has_a_line_that_says_whether_its_bound_is_met() {
    let text = show(&[
        counted("small", alike([1001, 1004, 1020, 1000])),
        counted("large", alike([10_000, 10_080, 10_300, 10_000])),
        counted("timed", [[10_000; 2], [10_000, 10_900], [10_900; 2], [10_000; 2]].map(|two| two.map(Some))),
    ]);
    for line in [
        "statistics: +0.050 % by the geometric mean, the most +0.100 % (small); at most 0.2 %: met by each",
        "profile: +0.600 % by the geometric mean, the most +0.800 % (large); at most 0.5 %: not met",
        "trace: +2.499 % by the geometric mean, the most +3.000 % (large); at most 1.0 %: not met",
        "in no line above, since counts differ by more than 0.1 %: timed",
    ] {
        assert!(text.lines().any(|at| at == line), "{line}: {text}");
    }
    let row = text.lines().find(|line| line.starts_with("timed")).unwrap();
    assert_eq!(
        row.split_whitespace().collect::<Vec<_>>()[1..],
        ["10,000", "+0.000", "%", "+4.500", "%", "+9.000", "%", "9.000", "%"]
    );
    let some = verdict("profile", &[(1.001, "a"), (1.006, "b")], 1.005);
    assert!(some.ends_with("at most 0.5 %: met by the mean, not by 1 of 2\n"), "{some}");
}

#[test]
fn a_run_that_failed_is_named_and_in_no_mean() {
    let mut counts = alike([1000; 4]);
    counts[0][1] = None;
    let text = show(&[counted("killed", counts)]);
    assert!(text.contains("not counted: killed on craton+statistics: signal 9"), "{text}");
    assert!(text.contains("statistics: no workload was counted"), "{text}");
    assert!(text.contains("profile: +0.000 %"), "{text}");
}
