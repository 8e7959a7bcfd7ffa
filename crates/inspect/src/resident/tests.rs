use super::*;

#[test]
fn smaps_is_read_by_mapping() {
    let text = "7f00-8f00 rw-p 00000000 00:00 0 \nSize: 4 kB\nRss:       12 kB\nPss:  6 kB\nPss_Dirty: 3 kB\nSwap: 1 kB\n\
                VmFlags: rd wr\n8f00-9f00 r--s 00000000 08:01 7   /x y\nRss: 4 kB\n";
    let all = mappings_in(text);
    let numbers: Vec<_> =
        all.iter().map(|m| (m.rss_bytes >> 10, m.pss_bytes >> 10, m.swap_bytes >> 10, m.shared)).collect();
    assert_eq!(numbers, [(12, 6, 1, false), (4, 0, 0, true)]);
    assert_eq!((all[1].map.path.as_str(), all[1].map.start), ("/x y", 0x8f00));
}

#[test]
fn pages_that_were_written_have_memory() {
    let memory = vec![1u8; 1 << 20];
    let (page, at) = (page_size() as u64, memory.as_ptr() as u64);
    let whole = at.next_multiple_of(page)..(at + (1 << 20)) / page * page;
    let pages = Pages::open(std::process::id()).unwrap();
    assert_eq!(pages.bytes(whole.clone()), whole.end - whole.start);
    let mut first = None;
    pages.each(whole.clone(), 0, |page| first = first.or(Some(page)));
    assert_eq!((first, pages.page()), (Some(whole.start), page));
}
