use super::chunk::{MOST_STRIPES, SLOTS, slot_at, slot_order};
use super::entry::{Entry, Of, decode_id, decode_link, decode_place, encode_id, encode_link, encode_place};
use std::collections::BTreeSet;

const SALT: u64 = 0xc0ffee;

#[test]
fn entries_are_read_as_written() {
    let entries = [
        Entry::Empty,
        Entry::Extent { page: (1 << 36) - 1, pages: (1 << 26) - 1, is_slab: false },
        Entry::Extent { page: 16, pages: 16, is_slab: true },
        Entry::Tombstone { id: (1 << 40) - 1, slot: 123 },
        Entry::Tombstone { id: 1, slot: 0 },
    ];
    for entry in entries {
        assert_eq!(Entry::decode(SALT, entry.encode(SALT)), Some(entry));
    }
    let tombstone = Entry::Tombstone { id: 77, slot: 5 }.encode(SALT);
    // Above the type, which would make it an extent's.
    assert!((2..64).all(|bit| Entry::decode(SALT, tombstone ^ 1 << bit).is_none()));
    assert_eq!(Entry::decode(SALT + 1, tombstone), None);
}

#[test]
fn checked_words_are_read_as_written() {
    assert_eq!(decode_place(SALT, Of::Head(true), encode_place(SALT, Of::Head(true), 65_536)), Some(65_536));
    assert_eq!(decode_place(SALT, Of::Head(false), encode_place(SALT, Of::Head(true), 65_536)), None);
    assert_eq!(decode_link(SALT, 9, encode_link(SALT, 9, 1024)), Some(1024));
    assert_eq!(decode_link(SALT, 8, encode_link(SALT, 9, 1024)), None);
    assert_eq!(decode_id(SALT, 1024, encode_id(SALT, 1024, 9)), Some(9));
    assert_eq!(decode_id(SALT, 2048, encode_id(SALT, 1024, 9)), None);
    assert_eq!(decode_id(SALT, 1024, 0), None);
}

#[test]
fn every_slot_is_used_once_and_stripes_alternate() {
    for stripes in 1..=MOST_STRIPES {
        let order = slot_order(stripes);
        assert_eq!(order.iter().collect::<BTreeSet<_>>().len(), SLOTS);
        let line = |slot: &u8| slot_at(0, *slot) / 64;
        // The first line has a header; the last group may have fewer lines.
        let same = order.windows(2).filter(|pair| line(&pair[0]) == line(&pair[1])).count();
        let most = if stripes == 1 { SLOTS } else { 8 };
        assert!(same <= most, "{same} of {SLOTS} with {stripes} stripes");
    }
}
