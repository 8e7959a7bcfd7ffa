extern crate std;
use super::*;
use std::vec;

#[test]
fn a_head_is_read_as_written_and_a_changed_one_is_refused() {
    let head = Head { generation: 3, len: 8192, id: 5 };
    let mut bytes = [0; HEAD_BYTES];
    head.write(&mut bytes);
    assert_eq!(Head::read(&bytes), Some(head));
    for bit in 0..8 * HEAD_BYTES {
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(Head::read(&bytes), None, "bit {bit}");
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
}

#[test]
fn a_record_is_whole_only_at_its_place_and_unchanged() {
    let (generation, sequence, len) = (1, 2, 1 << 20);
    let record = Record { generation, sequence, len, entries: 2, is_last: true, data_pages: 1, previous: 9 };
    let mut table = vec![0; table_bytes(2) as usize];
    let changes = [Change::Data { page: 7, check: 5 }, Change::Zero { page: 9, count: 3 }];
    for (change, bytes) in changes.into_iter().zip(table[HEAD_BYTES..].chunks_mut(ENTRY_BYTES)) {
        change.write(bytes);
        assert_eq!(Change::read(&bytes[..].try_into().unwrap()), change);
    }
    record.write(8192, &mut table);
    let (read, check) = Record::read(table.first_chunk().unwrap()).unwrap();
    assert_eq!((read, read.bytes()), (record, 8192));
    assert!(Record::is_whole(8192, &mut table, check));
    assert!(!Record::is_whole(4096, &mut table, check));
    for bit in 0..8 * 96 {
        table[bit / 8] ^= 1 << (bit % 8);
        let is_whole = Record::read(table.first_chunk().unwrap())
            .is_some_and(|(_, check)| Record::is_whole(8192, &mut table, check));
        assert!(!is_whole, "bit {bit}");
        table[bit / 8] ^= 1 << (bit % 8);
    }
}

#[test]
fn each_bit_of_a_page_changes_its_check() {
    let mut page = vec![3; BLOCK as usize];
    let check = check_of(0, &page);
    for bit in 0..8 * page.len() {
        page[bit / 8] ^= 1 << (bit % 8);
        assert_ne!(check_of(0, &page), check, "bit {bit}");
        page[bit / 8] ^= 1 << (bit % 8);
    }
}
