use super::*;

const MIB: usize = 1 << 20;
const MOST: usize = 1 << 30;

fn entry(i: usize, bytes: usize) -> Entry {
    Entry { at: i << 30, bytes }
}

#[test]
fn nothing_is_kept_of_a_program_that_frees_for_good() {
    let mut kept = Kept::NONE;
    assert!(!kept.wants(40 * MIB, MOST));
    kept.note_gone(40 * MIB, 0);
    assert!(!kept.note_miss(40 * MIB, KEEP_NS + 1), "too late");
    assert!(!kept.wants(MIB, MOST));
}

#[test]
fn what_is_wanted_back_is_kept_from_then_on_until_it_is_not() {
    let mut kept = Kept::NONE;
    kept.note_gone(40 * MIB, 0);
    assert!(kept.note_miss(44 * MIB, KEEP_NS));
    assert!(!kept.note_miss(44 * MIB, KEEP_NS), "one request for one free");
    assert!(kept.wants(50 * MIB, MOST) && !kept.wants(51 * MIB, MOST) && !kept.wants(50 * MIB, 49 * MIB));
    assert!(kept.has_room(40 * MIB, MOST));
    kept.put(entry(1, 40 * MIB), 5);
    assert!(!kept.has_room(40 * MIB, MOST));
    assert_eq!(kept.take_expired(5 + KEEP_NS - 1), None);
    assert_eq!(kept.take_expired(5 + KEEP_NS), Some(entry(1, 40 * MIB)));
    assert_eq!(kept.bytes(), 0);
    assert!(!kept.wants(40 * MIB, MOST));
}

#[test]
fn the_best_fit_is_taken() {
    let mut kept = Kept::NONE;
    for (i, mib) in [40, 60, 50, 35].into_iter().enumerate() {
        kept.put(entry(i + 1, mib * MIB), i as u64);
    }
    assert_eq!(kept.take(45 * MIB, 1), Some(entry(3, 50 * MIB)));
    assert_eq!(kept.take(100 * MIB, 1), Some(entry(2, 60 * MIB)), "the longest, if none is long enough");
    assert_eq!(kept.take(35 * MIB, 1 << 32), Some(entry(4, 35 * MIB)), "what is aligned");
    assert_eq!(kept.take(35 * MIB, 1 << 32), None);
    assert_eq!(kept.take_oldest(), Some(entry(1, 40 * MIB)));
    assert_eq!((kept.take_oldest(), kept.bytes()), (None, 0));
}

#[test]
fn there_are_so_many_places() {
    let mut kept = Kept::NONE;
    kept.note_gone(100 * PLACES * MIB, 0);
    kept.note_miss(100 * PLACES * MIB, 0);
    let held = (0..20).filter(|i| {
        let room = kept.has_room(MIB, MOST);
        if room {
            kept.put(entry(*i, MIB), 0);
        }
        room
    });
    assert_eq!(held.count(), PLACES);
}
