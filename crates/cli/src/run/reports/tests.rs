use super::*;

const TEXT: &str = "craton: something else
craton: BUG use-after-free: read from a buffer after it was freed
craton:   buffer 0x7f617c800fe0 of 24 bytes, class of 32
craton:   touched 0x7f617c800fe3, at offset 3
craton:   allocated by thread 15198 at 2122.006680 s, 0.000391 s ago:
craton:     #0 0x55efbd00c192 get+0x9 (/home/me/my (old)+program+0x1192)
craton:     #1 0x7f0000000010
craton:   freed by an unknown stack: debug=audit records stacks
craton:   found by thread 15198:
craton:     #0 0x55efbd00c1a0 (/home/me/stripped+0x11a0)
craton: the process ends here, since what it does from now on cannot be trusted
craton:   no detail of a report
";

#[test]
fn a_report_has_its_lines_and_stacks() {
    let all = parse(7, TEXT);
    let [Reports { program, all, lost_objects }] = &all[..] else { panic!("{all:?}") };
    assert_eq!(program, "");
    let [report] = &all[..] else { panic!("{all:?}") };
    assert_eq!((report.pid, report.kind.as_str(), report.bytes, *lost_objects), (7, "use-after-free", Some(24), 0));
    assert_eq!(report.message, "read from a buffer after it was freed");
    assert_eq!(report.details.len(), 2, "{:?}", report.details);
    let frame = |address, symbol: Option<&str>, place: Option<(&str, u64)>| RawFrame {
        address,
        symbol: symbol.map(str::to_owned),
        place: place.map(|(path, at)| (path.to_owned(), at)),
    };
    let allocated = vec![
        frame(0x55ef_bd00_c192, Some("get"), Some(("/home/me/my (old)+program", 0x1192))),
        frame(0x7f00_0000_0010, None, None),
    ];
    let found = vec![frame(0x55ef_bd00_c1a0, None, Some(("/home/me/stripped", 0x11a0)))];
    assert_eq!(report.stacks, [(Role::Allocated, allocated), (Role::Freed, vec![]), (Role::Found, found)]);
}

#[test]
fn leaks_are_summed() {
    let leak = |rest: &str| {
        let text =
            format!("craton: BUG leak: nothing leads to a buffer{rest}\ncraton:   buffer 0x10 of 24 bytes, large\n");
        parse(1, &text)[0].all[0].lost
    };
    let lost = |objects, bytes, held_objects, held_bytes| Lost { objects, bytes, held_objects, held_bytes };
    assert_eq!(leak(""), lost(1, 24, 0, 0));
    assert_eq!(leak("; 1 buffer of 10 bytes hangs on it"), lost(1, 24, 1, 10));
    let many = " and to 2 more that were allocated there, 80 bytes in all; 3 buffers of 33 bytes hang on it";
    assert_eq!(leak(many), lost(3, 80, 3, 33));
    assert_eq!(lost(3, 80, 3, 33).text(), "3 buffers of 80 bytes; 3 buffers of 33 bytes hang on them");
    assert_eq!(lost(1, 1, 1, 2).text(), "1 buffer of 1 byte; 1 buffer of 2 bytes hangs on it");
    assert_eq!(parse(1, "craton: leaks: 1200 of 10 buffers, 5 bytes, are lost\n")[0].lost_objects, 1200);
}

#[test]
fn a_report_that_was_cut_is_kept_as_far_as_it_goes() {
    for end in 0..TEXT.len() {
        let found = parse(1, &TEXT[..end]);
        assert!(found.len() <= 1 && found.iter().all(|found| found.all.len() <= 1));
    }
}

#[test]
fn programs_that_follow_one_another_in_a_process_are_kept_apart() {
    let leaks = |name: &str, n: u64| {
        format!(
            "craton: reports of process 7 ({name})\ncraton: BUG leak: nothing leads to a buffer\ncraton: leaks: {n} of 9\n"
        )
    };
    let all = parse(7, &(leaks("a (b)", 1) + &leaks("c", 2) + &leaks("a (b)", 3)));
    let found: Vec<(&str, u64, usize)> =
        all.iter().map(|own| (own.program.as_str(), own.lost_objects, own.all.len())).collect();
    assert_eq!(found, [("a (b)", 4, 2), ("c", 2, 1)]);
    assert!(all.iter().all(|own| own.all.iter().all(|report| report.program == own.program && report.pid == 7)));
}
