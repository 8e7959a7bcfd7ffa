use super::*;
use crate::front;
use crate::observe::stats::{counted, counted_with_page_tables};
use std::vec::Vec;

const MIB: u64 = 1 << 20;

fn number(name: &str) -> u64 {
    counted().numbers().into_iter().find(|(key, _)| *key == name).map(|(_, value)| value).unwrap()
}

#[test]
fn a_call_for_statistics_shows_spans_where_they_lie_and_what_is_released() {
    let large = |bytes: usize| {
        let object = front::malloc(bytes);
        assert!(!object.is_null());
        // SAFETY: of that length.
        unsafe { object.write_bytes(1, bytes) };
        object
    };
    let objects: Vec<*mut u8> = (0..8).map(|_| large(8 << 20)).collect();
    assert!(number("large_span_bytes") >= 60 * MIB && number("granted_bytes") >= 64 * MIB);
    counted_with_page_tables();
    let (resident, huge) = (SEGMENT.resident_bytes.load(Relaxed), SEGMENT.resident_huge_bytes.load(Relaxed));
    assert!(resident == 0 || resident >= 64 * MIB, "{resident}");
    assert!(huge <= resident && resident <= SEGMENT.granted_bytes.load(Relaxed));
    let released = number("released_bytes");
    for object in objects {
        // SAFETY: ours.
        unsafe { front::free(object) }.unwrap();
    }
    front::release();
    assert!(number("released_bytes") >= released + 32 * MIB);
}

#[test]
fn in_a_signal_handler_inside_a_request_the_last_numbers_stay() {
    collect();
    nested::within(|| {
        // Locking twice would abort.
        let _held = HEAP.lock_pages();
        collect();
    });
}

#[test]
fn what_a_tick_and_limits_release_is_counted_apart() {
    let apart = |name| SEGMENT.numbers().into_iter().find(|(key, _)| *key == name).unwrap().1;
    let before = (apart("released_background_bytes"), apart("released_limit_bytes"));
    ticked(3);
    relieved(2);
    assert!(apart("released_background_bytes") >= before.0 + 3 * 8192);
    assert!(apart("released_limit_bytes") >= before.1 + 2 * 8192);
}
