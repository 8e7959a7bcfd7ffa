pub const AMONG: &str = "debug=audit,redzone,poison,verify";
pub const APART: &str = "debug=all";

pub const BOTH: &[&str] = &[AMONG, APART];
pub const ONLY_APART: &[&str] = &[APART];
pub const LONG_LOG: &[&str] = &["audit_log=2100000,debug=all", "audit_log=2100000,debug=audit,redzone,poison,verify"];
pub const AMONG_NONE_WAITS: &[&str] = &["debug=audit,redzone,verify,quarantine=0"];

#[derive(Clone, Copy)]
pub struct Case {
    pub part: &'static str,
    pub options: &'static [&'static str],
    pub kind: &'static str,
    /// 0 for no buffer.
    pub size: u64,
    /// `None`: no meaning.
    pub offset: Option<i64>,
    /// In this order, as the next two.
    pub allocated: &'static [&'static str],
    pub freed: &'static [&'static str],
    pub found: &'static [&'static str],
}

pub const MADE: &[&str] = &["make_buffer", "main"];
pub const MADE_ELSEWHERE: &[&str] = &["make_buffer", "makes_elsewhere"];
pub const ALIGNED: &[&str] = &["make_aligned", "main"];
pub const CLEARED: &[&str] = &["make_cleared", "main"];
pub const MAIN: &[&str] = &["main"];
pub const GIVEN: &[&str] = &["give_up", "main"];
pub const GIVEN_ELSEWHERE: &[&str] = &["give_up", "gives_up_elsewhere"];
pub const NONE: &[&str] = &[];
pub const OVERFLOW: &str = "overflow";
pub const UNDERFLOW: &str = "underflow";
pub const AFTER: &str = "use-after-free";
pub const TWICE: &str = "double-free";
pub const BAD: &str = "bad-free";
pub const MISMATCH: &str = "size-mismatch";
pub const PAIR: &str = "mismatch";
pub const CACHE: &str = "wrong-cache";
pub const FRESH: &str = "uninitialised";

const fn live(part: &'static str, kind: &'static str, size: u64, allocated: &'static [&'static str]) -> Case {
    Case { part, options: BOTH, kind, size, offset: None, allocated, freed: NONE, found: MAIN }
}

const fn past(part: &'static str, size: u64, allocated: &'static [&'static str]) -> Case {
    Case { offset: Some(size as i64), ..live(part, OVERFLOW, size, allocated) }
}

const fn before(part: &'static str, size: u64, allocated: &'static [&'static str]) -> Case {
    Case { offset: Some(-1), ..live(part, UNDERFLOW, size, allocated) }
}

const fn dead(part: &'static str, kind: &'static str, size: u64) -> Case {
    Case { freed: GIVEN, ..live(part, kind, size, MADE) }
}

const fn written(part: &'static str, size: u64) -> Case {
    Case { offset: Some(5), found: NONE, ..dead(part, AFTER, size) }
}

const fn inside(part: &'static str, size: u64, offset: i64) -> Case {
    Case { offset: Some(offset), ..live(part, BAD, size, MADE) }
}

pub const MIB: u64 = 1 << 20;

pub const OVERFLOWS: &[Case] = &[
    past("past_end_of_1", 1, MADE),
    past("past_end_of_13", 13, MADE),
    past("past_end_of_a_class", 48, MADE),
    past("past_end_of_100", 100, MADE),
    past("past_end_of_a_page", 4096, MADE),
    past("past_end_of_large", 300_001, MADE),
    past("past_end_of_huge", 48 * MIB + 5, MADE),
    past("past_end_of_aligned", 100, ALIGNED),
    past("past_end_of_page_aligned", 5000, ALIGNED),
    past("past_end_of_cleared", 57, CLEARED),
    past("past_end_of_grown", 70, &["past_end_of_grown", "main"]),
    past("past_end_of_shrunk", 40, &["past_end_of_shrunk", "main"]),
    past("past_end_of_a_text", 8, &["strdup", "past_end_of_a_text", "main"]),
    past("many_past_end", 24, MADE),
    before("before_start_of_1", 1, MADE),
    before("before_start_of_a_class", 64, MADE),
    before("before_start_of_large", 300_000, MADE),
    before("before_start_of_huge", 48 * MIB, MADE),
    before("before_start_of_aligned", 64, ALIGNED),
    before("before_start_of_cleared", 33, CLEARED),
    Case { found: NONE, ..past("past_end_by_a_thread", 100, MADE) },
    Case { found: NONE, ..past("past_end_freed_by_a_thread", 100, MADE) },
    past("past_end_of_a_threads", 100, MADE_ELSEWHERE),
    past("past_end_and_realloc", 100, MADE),
    past("past_end_and_exit", 100, MADE),
    Case {
        options: AMONG_NONE_WAITS,
        offset: Some(-17),
        found: &["read_byte", "read_before_the_heap", "main"],
        ..live("read_before_the_heap", UNDERFLOW, 100, &["read_before_the_heap", "main"])
    },
    Case { options: ONLY_APART, found: &["read_byte", "read_past_end", "main"], ..past("read_past_end", 4096, MADE) },
    Case { options: ONLY_APART, offset: Some(5100), ..live("far_past_end", OVERFLOW, 100, MADE) },
    Case {
        options: ONLY_APART,
        offset: Some(6000),
        ..live("in_the_tail_given_up", OVERFLOW, 40, &["in_the_tail_given_up", "main"])
    },
    live("byte_of_the_redzone_past_end", OVERFLOW, 64, MADE),
    past("in_a_buffer_of_nothing", 0, MADE),
    past("past_end_of_aligned_2m", 100, ALIGNED),
    Case { options: ONLY_APART, offset: Some(94), ..live("past_end_by_30", OVERFLOW, 64, MADE) },
    Case { options: ONLY_APART, offset: Some(4160), ..live("past_end_by_a_page", OVERFLOW, 64, MADE) },
    Case { offset: Some(-8), ..live("before_start_by_8", UNDERFLOW, 24, MADE) },
    Case { options: ONLY_APART, offset: Some(-32), ..live("before_start_by_32", UNDERFLOW, 24, MADE) },
    before("before_start_of_a_page", 4096, MADE),
    past("cleared_too_much", 40, MADE),
    past("text_one_too_long", 16, MADE),
    past("text_added_too_long", 24, MADE),
    past("printed_too_long", 8, MADE),
    past("one_turn_too_many", 40, MADE),
    past("read_from_a_file_too_much", 40, MADE),
    past("zero_past_end", 64, MADE),
    past("ones_past_end", 40, MADE),
];

pub const FREED: &[Case] = &[
    written("write_freed_small", 40),
    written("write_freed_page", 5000),
    written("write_freed_large", 300_000),
    written("write_freed_huge", 48 * MIB),
    written("write_freed_later", 40),
    written("write_freed_and_serve_again", 1000),
    written("write_freed_by_a_thread", 40),
    Case { freed: GIVEN_ELSEWHERE, ..written("write_what_a_thread_freed", 40) },
    Case { freed: &["write_moved", "main"], ..written("write_moved", 40) },
    // As an address the buffer is only suspected; on separate pages the read is detected.
    Case { found: &["next_number", "read_freed", "main"], ..dead("read_freed", AFTER, 16) },
    Case { found: &["next_number", "read_freed_large"], ..dead("read_freed_large", AFTER, 300_000) },
    Case { found: &["next_number", "reads_elsewhere"], ..dead("read_freed_by_a_thread", AFTER, 16) },
    Case { found: &["call_through", "call_freed", "main"], ..dead("call_freed", AFTER, 16) },
    Case { found: &["next_number", "read_freed_after_a_fork", "main"], ..dead("read_freed_after_a_fork", AFTER, 16) },
    Case { found: &["next_number", "read_freed_in_child", "main"], ..dead("read_freed_by_a_child", AFTER, 16) },
    Case { freed: &["give_up", "write_freed_in_child", "main"], ..written("write_freed_by_a_child", 40) },
    Case { found: &["realloc_freed", "main"], ..dead("realloc_freed", AFTER, 40) },
    Case { found: &["ask_freed", "main"], ..dead("ask_freed", AFTER, 40) },
    Case { found: GIVEN, ..dead("twice_small", TWICE, 40) },
    Case { found: GIVEN, ..dead("twice_large", TWICE, 300_000) },
    Case { found: GIVEN, ..dead("twice_huge", TWICE, 48 * MIB) },
    Case { allocated: ALIGNED, ..dead("twice_aligned", TWICE, 100) },
    Case { allocated: CLEARED, ..dead("twice_cleared", TWICE, 200) },
    Case { found: GIVEN, ..dead("twice_with_others_between", TWICE, 40) },
    Case { freed: GIVEN_ELSEWHERE, found: GIVEN, ..dead("twice_once_by_a_thread", TWICE, 40) },
    Case { freed: GIVEN_ELSEWHERE, found: GIVEN_ELSEWHERE, ..dead("twice_by_threads", TWICE, 40) },
    Case { freed: &["free_moved", "main"], found: GIVEN, ..dead("free_moved", TWICE, 40) },
    Case { found: GIVEN, ..inside("free_middle", 160, 16) },
    Case { found: GIVEN, ..inside("free_middle_by_1", 160, 1) },
    Case { found: GIVEN, ..inside("free_middle_of_large", 300_000, 4096) },
    Case { found: GIVEN_ELSEWHERE, ..inside("free_middle_by_a_thread", 160, 32) },
    Case { found: &["realloc_middle", "main"], ..inside("realloc_middle", 160, 16) },
    Case { found: GIVEN, ..live("free_stack", BAD, 0, NONE) },
    Case { found: GIVEN, ..live("free_global", BAD, 0, NONE) },
    Case { offset: Some(0), ..written("cleared_freed", 200) },
    Case { allocated: ALIGNED, ..written("write_freed_aligned", 512) },
    Case { offset: Some(47), ..written("write_freed_last_byte", 48) },
    Case { found: GIVEN, ..dead("twice_after_10000", TWICE, 40) },
    // The address was reused: the last owner is reported.
    Case { allocated: MAIN, freed: MAIN, found: GIVEN, ..dead("twice_after_1000000", TWICE, 40) },
    // Its memory is reused; with a shorter log the address is inside of another.
    Case { options: LONG_LOG, found: GIVEN, ..dead("twice_after_1000000_others", TWICE, 40) },
    Case { allocated: MAIN, freed: MAIN, found: GIVEN, ..dead("twice_huge_after_50", TWICE, 48 * MIB) },
    Case { allocated: MAIN, freed: MAIN, found: GIVEN, ..dead("twice_large_after_1000", TWICE, 300_000) },
    Case { found: GIVEN, ..dead("twice_when_reused", TWICE, 1000) },
    Case { found: &["give_up", "give_up_in_child", "main"], ..dead("twice_in_a_child", TWICE, 40) },
    Case { freed: &["realloc_twice", "main"], found: &["realloc_twice", "main"], ..dead("realloc_twice", AFTER, 40) },
    Case { found: GIVEN, ..inside("free_end", 64, 64) },
    Case { options: ONLY_APART, found: GIVEN, ..inside("free_before", 64, -16) },
    Case { found: GIVEN, ..inside("free_middle_of_huge", 48 * MIB, 1 << 20) },
    Case { found: &["ask_middle", "main"], ..inside("ask_middle", 160, 16) },
    Case { found: GIVEN, ..live("free_code", BAD, 0, NONE) },
    Case { found: GIVEN, ..live("free_constant", BAD, 0, NONE) },
    Case { found: GIVEN, ..live("free_wild", BAD, 0, NONE) },
    Case { found: GIVEN, ..live("free_small_number", BAD, 0, NONE) },
    Case { found: GIVEN, ..live("free_mapping", BAD, 0, NONE) },
    Case { found: &["realloc_stack", "main"], ..live("realloc_stack", BAD, 0, NONE) },
];

pub const SIZED: &[&str] = &["give_up_sized", "main"];

pub const WRONG: &[Case] = &[
    Case { found: SIZED, ..live("one_more", MISMATCH, 40, MADE) },
    Case { found: SIZED, ..live("one_less", MISMATCH, 40, MADE) },
    Case { found: SIZED, ..live("another_class", MISMATCH, 40, MADE) },
    Case { found: SIZED, ..live("size_of_large", MISMATCH, 300_000, MADE) },
    Case { found: &["give_up_sized", "gives_up_sized_elsewhere"], ..live("size_by_a_thread", MISMATCH, 40, MADE) },
    Case { found: &["give_up_aligned", "main"], ..live("size_of_aligned", MISMATCH, 128, ALIGNED) },
    Case { found: &["give_up_aligned", "main"], ..live("alignment_of_aligned", MISMATCH, 128, MAIN) },
    Case { found: &["next_number", "never_written", "main"], ..live("never_written", FRESH, 16, MADE) },
    Case { found: &["next_number", "written_in_part", "main"], ..live("written_in_part", FRESH, 16, MADE) },
    Case { found: &["next_number", "main"], ..live("never_written_large", FRESH, 300_000, MADE) },
    Case { found: &["next_number", "reads_elsewhere"], ..live("never_written_by_a_thread", FRESH, 16, MADE) },
    Case { found: &["call_through", "called_never_written", "main"], ..live("called_never_written", FRESH, 16, MADE) },
    Case { found: &["next_number", "main"], ..live("never_written_where_it_grew", FRESH, 32, MAIN) },
];

pub const NUMBERS: &[&str] = &["make_numbers", "main"];
pub const NUMBERS_GIVEN: &[&str] = &["give_up_numbers", "main"];

pub const CXX: &[Case] = &[
    past("past_end_of_array", 28, NUMBERS),
    before("before_start_of_array", 28, NUMBERS),
    Case { freed: NUMBERS_GIVEN, found: NUMBERS_GIVEN, ..live("twice_array", TWICE, 28, NUMBERS) },
    Case { offset: Some(4), freed: MAIN, found: NONE, ..live("write_freed_element", AFTER, 400, MAIN) },
    Case { found: &["give_up_object", "main"], ..live("base_of_object", MISMATCH, 56, &["make_object", "main"]) },
    Case { found: SIZED, ..live("sized_delete", MISMATCH, 40, MAIN) },
    Case { found: &["give_up_sized"], ..live("sized_delete_by_a_thread", MISMATCH, 40, MAIN) },
];

const fn pair(part: &'static str, size: u64, found: &'static [&'static str]) -> Case {
    Case { options: PAIRS, found, ..live(part, PAIR, size, MAIN) }
}

pub const PAIRS: &[&str] = &["debug=audit,mismatch", "debug=mismatch,audit:malloc", APART];
pub const DELETED: &[&str] = &["give_up_object_of", "main"];
pub const DELETED_ARRAY: &[&str] = &["give_up_array_of", "main"];
pub const GIVEN_TO_C: &[&str] = &["give_up_to_c", "main"];

pub const FAMILIES: &[Case] = &[
    pair("malloc_and_delete", 40, DELETED),
    pair("large_malloc_and_delete", 300_000, DELETED),
    pair("new_and_free", 40, GIVEN_TO_C),
    pair("new_array_and_free", 40, GIVEN_TO_C),
    pair("new_and_delete_array", 40, DELETED_ARRAY),
    pair("new_array_and_delete", 40, DELETED),
    pair("aligned_new_and_delete", 128, DELETED),
    pair("aligned_new_and_free", 128, GIVEN_TO_C),
    pair("new_and_aligned_delete", 4096, MAIN),
    pair("new_and_realloc", 40, MAIN),
];

pub const TAKEN: &[&str] = &["take_object", "main"];
pub const RETURNED: &[&str] = &["give_back", "main"];
pub const NODE: u64 = 40;

pub const CACHES: &[Case] = &[
    past("past_end_of_object", NODE, TAKEN),
    before("before_start_of_object", NODE, TAKEN),
    Case { offset: Some(5), freed: RETURNED, found: NONE, ..live("write_freed_object", AFTER, NODE, TAKEN) },
    Case { freed: RETURNED, found: &["next_number", "main"], ..live("read_freed_object", AFTER, NODE, TAKEN) },
    Case { freed: RETURNED, found: RETURNED, ..live("twice_object", TWICE, NODE, TAKEN) },
    Case {
        freed: &["give_back", "gives_back_elsewhere"],
        found: RETURNED,
        ..live("twice_object_once_by_a_thread", TWICE, NODE, TAKEN)
    },
    Case { found: RETURNED, ..live("to_another_cache", CACHE, NODE, TAKEN) },
    Case { found: MAIN, ..live("object_to_a_heap", CACHE, NODE, TAKEN) },
    Case { found: GIVEN, ..live("object_to_malloc", CACHE, NODE, TAKEN) },
    Case { found: RETURNED, ..live("buffer_to_a_cache", CACHE, NODE, MADE) },
    Case { offset: Some(8), found: RETURNED, ..live("middle_of_object", BAD, NODE, TAKEN) },
    Case { found: &["next_number", "main"], ..live("field_never_constructed", FRESH, NODE, TAKEN) },
];

pub const LOST: &[(&str, u64, &[&str])] = &[
    ("lost", 100, &["make_buffer", "lose", "main"]),
    ("lost_last", 100, &["make_buffer", "lose", "main"]),
    ("lost_large", 300_000, &["make_buffer", "lose_large", "main"]),
    ("lost_huge", 48 * MIB, &["make_buffer", "lose_huge", "main"]),
    ("lost_circle", 24, &["lose_circle", "main"]),
    ("lost_list", 24, &["lose_list", "main"]),
    ("lost_by_a_thread", 100, &["make_buffer", "lose", "loses_elsewhere"]),
    ("lost_on_an_ended_stack", 100, &["make_buffer", "loses_on_its_stack"]),
    ("overwritten", 100, &["make_buffer", "overwrite", "main"]),
    ("lost_member", 100, &["make_buffer", "lose_member", "main"]),
    ("lost_aligned", 200, &["make_aligned", "lose_aligned", "main"]),
    ("lost_by_realloc", 100, &["make_buffer", "lose_by_realloc", "main"]),
];

pub const KEPT: &[&str] = &[
    "kept_in_global",
    "kept_by_the_middle",
    "kept_by_the_end",
    "kept_by_a_chain",
    "kept_by_a_thread",
    "kept_on_a_stack",
    "kept_here",
];

const fn read(part: &'static str, kind: &'static str, size: u64, offset: i64) -> Case {
    Case { options: ONLY_APART, offset: Some(offset), ..live(part, kind, size, MADE) }
}

const fn read_freed(part: &'static str, size: u64, offset: i64) -> Case {
    Case { freed: GIVEN, ..read(part, AFTER, size, offset) }
}

pub const READS: &[Case] = &[
    read("read_past_20", OVERFLOW, 20, 20),
    read("read_past_13", OVERFLOW, 13, 13),
    read("read_past_1", OVERFLOW, 1, 1),
    read("read_past_numbers_of_5", OVERFLOW, 20, 20),
    read("read_before_24", UNDERFLOW, 24, -1),
    read("read_before_16", UNDERFLOW, 16, -1),
    read("read_word_before_100", UNDERFLOW, 100, -1),
    Case { allocated: CLEARED, ..read("read_before_cleared", UNDERFLOW, 40, -1) },
    read("read_past_48", OVERFLOW, 48, 48),
    read("read_past_24_by_8", OVERFLOW, 24, 32),
    Case { allocated: ALIGNED, ..read("read_past_aligned", OVERFLOW, 128, 128) },
    Case { allocated: CLEARED, ..read("read_past_cleared", OVERFLOW, 160, 160) },
    read("read_past_large", OVERFLOW, 300_000, 300_000),
    read("read_past_huge", OVERFLOW, 48 * MIB, 48 * (1 << 20)),
    Case { allocated: &["read_past_grown", "main"], ..read("read_past_grown", OVERFLOW, 64, 64) },
    read("read_past_by_a_page", OVERFLOW, 64, 64 + 4096),
    read("read_before_a_page", UNDERFLOW, 4096, -1),
    read("read_before_large", UNDERFLOW, 304 << 10, -1),
    read("read_far_before", UNDERFLOW, 64, -5000),
    Case { found: &["reads_past_elsewhere"], ..read("read_past_by_a_thread", OVERFLOW, 100, 112) },
    read("read_each_past_end", OVERFLOW, 100, 100),
    Case { offset: None, ..read("copied_too_much", OVERFLOW, 256, 0) },
    Case { offset: None, ..read("text_without_end", OVERFLOW, 64, 0) },
    read_freed("read_freed_byte", 40, 5),
    read_freed("read_freed_huge_byte", 48 * MIB, 5),
    Case { freed: &["read_moved", "main"], ..read_freed("read_moved", 40, 5) },
    Case { offset: None, ..read_freed("copied_freed", 64, 0) },
    Case { allocated: &["strdup", "main"], offset: None, ..read_freed("length_of_freed_text", 21, 0) },
    read_freed("read_freed_after_10000", 40, 5),
];
