use super::*;

fn page(version: u64) -> Vec<u8> {
    let mut bytes = vec![0; PAGE];
    let mut set = |at: usize, word: u64| bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
    set(0, MAGIC);
    set(8, version);
    set(16, 77);
    set(24, 5);
    set(REST_AT + 8, 1);
    set(REST_AT + 24, u64::from_le_bytes(*b"sort\0\0\0\0"));
    set(REST_AT + 40, 94 | (OPTIONS.len() as u64) << 32);
    set(CLASSES_AT + CLASS, 32 | 8192 << 32);
    set(CLASSES_AT + CLASS + 8, 2 | 300 << 32);
    set(CLASSES_AT + 94 * CLASS + VALUE, u64::from_le_bytes(*b"inline\0\0"));
    bytes
}

#[test]
fn a_page_has_its_numbers_by_name_and_the_classes_in_use() {
    let read = Published::parse(&page(1)).unwrap();
    assert_eq!((read.pid, read.exe.as_str(), read.has_exited), (77, "sort", false));
    assert_eq!((read.number("refills"), read.number("pid"), read.number("no_such")), (5, 77, 0));
    let class = ClassShare { object_bytes: 32, slabs: 2, memory_bytes: 16384, objects_out: 300 };
    assert_eq!((read.classes, read.options), (vec![class], vec![(OPTIONS[1].key, "inline".to_owned())]));
}

#[test]
fn other_bytes_and_other_versions_are_refused() {
    assert!(Published::parse(&page(2)).is_err_and(|why| why.contains("version 2")));
    assert!(Published::parse(&page(1)[..4000]).is_err_and(|why| why.contains("no page")));
    assert!(Published::parse(&[0; PAGE]).is_err());
}
