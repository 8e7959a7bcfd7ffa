use super::*;

fn report(kind: &str, message: &str) -> Report {
    Report { kind: kind.into(), message: message.into(), ..Report::default() }
}

#[test]
fn a_late_check_points_at_the_buffer_and_not_at_the_check() {
    use Role::{Allocated, Found, Freed};
    for (kind, message, first) in [
        ("overflow", "written past the end of a buffer, found by exit", Allocated),
        ("overflow", "written past the end of a buffer, found by a watchpoint", Found),
        ("overflow", "read past the end of a buffer", Found),
        ("use-after-free", "written into a buffer after it was freed, found by alloc", Freed),
        ("use-after-free", "read from a buffer after it was freed", Found),
        ("double-free", "freed a buffer that is free already", Found),
        ("leak", "nothing leads to a buffer", Allocated),
    ] {
        assert_eq!(order(&report(kind, message))[0], first, "{kind}: {message}");
    }
}

#[test]
fn paths_have_no_dots() {
    assert_eq!(normal("/a/./b/../c.c"), "/a/c.c");
    assert_eq!(normal("../a.c"), "../a.c");
}

#[test]
fn a_finding_keeps_its_fingerprint_when_lines_move() {
    let mut namer = Namer::new("/".into());
    let stack = |symbol: &str, address| {
        let frame = RawFrame { address, symbol: Some(symbol.into()), place: None };
        vec![(Role::Found, vec![frame])]
    };
    let mut of = |symbol: &str, address, kind: &str| {
        let report = Report { stacks: stack(symbol, address), ..report(kind, "") };
        findings(&[report], &mut namer, &Rules::default())[0].fingerprint()
    };
    assert_eq!(of("f", 1, "overflow"), of("f", 2, "overflow"));
    assert!(of("f", 1, "overflow") != of("g", 1, "overflow") && of("f", 1, "overflow") != of("f", 1, "underflow"));
}
