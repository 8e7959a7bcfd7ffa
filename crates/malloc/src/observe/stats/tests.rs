use super::*;
use crate::observe::segment::Segment;

#[test]
fn the_largest_numbers_fit_into_a_line() {
    let marks = "{\"exe\":\"\"}\n".len() + 16;
    let numbers: usize = SEGMENT.numbers().iter().map(|(key, _)| key.len() + ",\"\":".len() + 20).sum();
    let names: usize = SEGMENT.names(PAGE_HEAP.name()).iter().map(|(key, _)| key.len() + ",\"\":\"\"".len() + 20).sum();
    assert!(marks + numbers + names < LINE, "{}", marks + numbers + names);
}

#[test]
fn a_code_has_a_name_also_where_it_is_new() {
    let segment = Segment::new();
    assert_eq!(segment.names("temeraire").map(|(_, name)| name), ["none", "not-read", "temeraire"]);
    segment.cache_mode.store(2, Relaxed);
    segment.memory_limit_source.store(4, Relaxed);
    assert_eq!(segment.names("temeraire").map(|(_, name)| name), ["compact-numbers", "option", "temeraire"]);
    segment.memory_limit_source.store(5, Relaxed);
    assert_eq!(segment.names("temeraire")[1], ("memory_limit_source_name", "unknown"));
}
