use super::*;
use crate::table::Kind;

#[test]
fn watchpoints_lie_beside_the_buffer_and_in_open_pages() {
    let page = process::page_size();
    for size in 0..=page {
        let under = 0x10_0000;
        let address = under + page - size.next_multiple_of(16).max(16);
        let buffer = Buffer { address, size, under, kind: Kind::Slot, ..Default::default() };
        let [front, tail] = beside(&buffer, under + page);
        assert_eq!(front, (address > under).then_some((address - 8, 8)), "{size}");
        assert_eq!(tail.is_some(), !size.is_multiple_of(16) || size == 0, "{size}");
        if let Some((at, len)) = tail {
            assert_eq!(at, address + size);
            assert!(at.is_multiple_of(len) && at + len <= under + page && len.is_power_of_two() && len <= 8, "{size}");
        }
    }
}

#[test]
fn a_burst_is_watched_and_then_as_many_as_the_pace_allows() {
    let watches = Watches::new();
    assert_eq!((0..1000).filter(|_| watches.may_move(1)).count(), BURST as usize);
    assert!(!watches.may_move(1 + PACE_NS / 2) && watches.may_move(1 + PACE_NS));
    assert_eq!((0..1000).filter(|_| watches.may_move(1 << 50)).count(), BURST as usize);
}

#[test]
fn a_freed_buffer_and_one_of_the_parents_are_watched_no_longer() {
    let watches = Watches::new();
    watches.buffers[2].store(!0x1000, Relaxed);
    watches.watched[2].store(!0x1014, Relaxed);
    assert_eq!((watches.buffer_of(0x1014), watches.buffer_of(0x1018)), (Some(0x1000), None));
    watches.leave(0x2000);
    assert_eq!(watches.buffer_of(0x1014), Some(0x1000));
    watches.leave(0x1000);
    assert_eq!(watches.buffer_of(0x1014), None);
    watches.buffers[2].store(!0x1000, Relaxed);
    watches.forget();
    assert_eq!(watches.buffer_of(0x1014), None);
}
