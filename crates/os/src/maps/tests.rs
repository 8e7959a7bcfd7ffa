extern crate std;
use super::*;

#[test]
fn the_stack_is_among_what_is_mapped() {
    let local = 0u8;
    let at = &raw const local as usize;
    let mut found = 0;
    assert!(each(|m| found += usize::from(m.start <= at && at < m.end && m.readable && m.writable)));
    assert_eq!(found, 1);
}

#[test]
fn one_mapping_is_told_of_as_it_is_among_all() {
    let local = 0u8;
    let code = one_mapping_is_told_of_as_it_is_among_all as *const () as usize;
    let heap = crate::mapping::map(8192, 1).unwrap();
    for address in [code, &raw const local as usize, heap, libc::strtoul as *const () as usize] {
        let mut among = None;
        each(|m| {
            if (m.start..m.end).contains(&address) {
                among = Some(std::format!("{m:?}"));
            }
        });
        assert_eq!(at(address, |m| std::format!("{m:?}")), among, "{address:#x}");
        let mut name = [0; PathText::CAPACITY];
        if let Answer::Mapping(m) = asked(address, &mut name) {
            assert_eq!(Some(std::format!("{m:?}")), among, "{address:#x}");
        }
    }
    crate::mapping::unmap(heap, 8192);
    assert_eq!(at(heap, |_| ()).and(at(8, |_| ())), None);
}

#[test]
fn pages_that_nobody_has_touched_are_left_out() {
    let page = crate::process::page_size();
    let at = crate::mapping::map(1000 * page, 1).unwrap();
    crate::mapping::advise_small(at, 1000 * page);
    for i in [3, 4, 900] {
        // SAFETY: ours.
        unsafe { ((at + i * page) as *mut u8).write(1) };
    }
    // SAFETY: as above.
    unsafe { ((at + 5 * page) as *mut u8).write(1) };
    if !crate::guarded::shut(at + 5 * page, page) {
        crate::guarded::discard(at + 5 * page, page);
    }
    let mut runs = [(0, 0); 3];
    let mut n = 0;
    Touched::open().each(at, at + 1000 * page, |from, to| {
        runs[n] = ((from - at) / page, (to - at) / page);
        n += 1;
    });
    assert_eq!((runs[0], runs[1], n), ((3, 5), (900, 901), 2));
    crate::mapping::unmap(at, 1000 * page);
}

#[test]
fn a_line_has_range_rights_and_name() {
    let m = parse(b"7f0000001000-7f0000003000 r--p 00001000 08:01 42                 /usr/lib/a b.so").unwrap();
    assert_eq!((m.start, m.end, m.readable, m.writable), (0x7f00_0000_1000, 0x7f00_0000_3000, true, false));
    assert_eq!((m.offset, m.name), (0x1000, &b"/usr/lib/a b.so"[..]));
    let blanks = b"55d0c0de0000-55d0c0de1000 r-xp 00001000 fe:01 123    /a path/with blanks (deleted)";
    assert_eq!(parse(blanks).unwrap().name, b"/a path/with blanks (deleted)");
    assert_eq!(parse(b"1000-2000 rw-p 00000000 00:00 0 ").unwrap().name, b"");
    assert!(parse(b"").is_none() && parse(b"xyz rw-p").is_none());
}

#[test]
fn anonymous_memory_with_a_name_is_anonymous() {
    let name =
        |rest: &str| parse(std::format!("7f00-8000 rw-p 00000000 00:00 0 {rest}").as_bytes()).unwrap().name.to_vec();
    assert_eq!(name("                [anon:craton: heap]"), b"");
    assert_eq!(name("                [heap]"), b"[heap]");
    assert_eq!(name("                /lib/[anon:x]"), b"/lib/[anon:x]");
}
