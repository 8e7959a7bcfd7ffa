//! The exact words: logs are searched for them.

use super::*;
use std::string::String;
use std::vec::Vec;

fn text(line: Line) -> String {
    String::from_utf8(line.as_bytes().to_vec()).unwrap()
}

fn buffer(state: State) -> Buffer {
    Buffer { address: 0x1000, size: 100, under: 0x0ff0, state, ..Default::default() }
}

fn lines(mistake: Mistake, state: State) -> (String, Option<String>) {
    let buffer = buffer(state);
    let headline = headline_of(mistake, &buffer, |line, _| line.text("cache \"jobs\""));
    let place = place_of(mistake, &buffer).map(text);
    (text(headline), place.map(|t| t.strip_prefix("craton:   ").unwrap().into()))
}

fn written(offset: isize) -> Mistake {
    let wrong = Wrong { offset: 0, found: 0x5a, expected: 0xbb };
    Mistake::Written { offset, wrong, found_by: "free" }
}

#[test]
fn a_write_beside_a_buffer_says_on_which_side_and_how_far() {
    let cases = [
        (-3, "underflow: written before the start", "at offset -3, 3 before the start"),
        (100, "overflow: written past the end", "at offset 100, 1 past the end"),
        (107, "overflow: written past the end", "at offset 107, 8 past the end"),
    ];
    for (offset, what, place) in cases {
        let (headline, line) = lines(written(offset), State::Live);
        assert_eq!(headline, std::format!("craton: BUG {what} of a buffer, found by free"));
        assert_eq!(line, Some(std::format!("{place}: 0x5a instead of 0xbb")));
    }
}

#[test]
fn a_write_into_a_free_buffer_says_where() {
    let wrong = Wrong { offset: 40, found: 0x01, expected: 0xef };
    let (headline, place) = lines(Mistake::WrittenFree { wrong, found_by: "alloc" }, State::Freed);
    assert_eq!(headline, "craton: BUG use-after-free: written into a buffer after it was freed, found by alloc");
    assert_eq!(place.as_deref(), Some("at offset 40: 0x01 instead of 0xef"));
}

#[test]
fn calls_with_a_wrong_buffer_say_which_call() {
    let freed = State::Freed;
    let cases = [
        (Mistake::DoubleFree, freed, "double-free: freed a buffer that is free already"),
        (Mistake::UsedFree { call: "realloc" }, freed, "use-after-free: realloc of a buffer that is free already"),
        (
            Mistake::WrongCache { given: Target::MALLOC },
            State::Live,
            "wrong-cache: gave a buffer of a cache to malloc's functions; it goes back by craton_cache_free",
        ),
        (
            Mistake::WrongCache { given: Target::cache(3) },
            State::Live,
            "wrong-cache: gave a buffer to cache \"jobs\", whose it is not",
        ),
        (Mistake::Claimed { size: 96, align: 1 }, State::Live, "size-mismatch: gave a buffer back as one of 96 bytes"),
        (
            Mistake::Claimed { size: 96, align: 64 },
            State::Live,
            "size-mismatch: gave a buffer back as one of 96 bytes aligned to 64",
        ),
        (
            Mistake::Elsewhere { call: "craton_heap_free" },
            State::Live,
            "wrong-cache: craton_heap_free of a buffer that is another's: no heap has it that the call is for",
        ),
    ];
    for (mistake, state, said) in cases {
        assert_eq!(lines(mistake, state), (std::format!("craton: BUG {said}"), None));
    }
    let (headline, place) = lines(Mistake::Inside { call: "free", offset: 10 }, State::Live);
    assert_eq!(headline, "craton: BUG bad-free: free of an address inside a buffer");
    assert_eq!(place.as_deref(), Some("at offset 10"));
}

#[test]
fn a_fault_says_what_was_touched_and_how() {
    let touched = |write, offset| Mistake::Touched { address: 0x2000, write, offset };
    let cases = [
        (Some(true), State::Live, 128, "overflow: written past the end of a buffer"),
        (Some(false), State::Live, 128, "overflow: read past the end of a buffer"),
        (None, State::Live, -4, "underflow: touched before the start of a buffer"),
        (Some(true), State::Closed, 5, "use-after-free: written into a buffer after it was freed"),
        (Some(false), State::Closed, 5, "use-after-free: read from a buffer after it was freed"),
        (None, State::Closed, 5, "use-after-free: touched a buffer after it was freed"),
    ];
    for (write, state, offset, said) in cases {
        let (headline, place) = lines(touched(write, offset), state);
        assert_eq!(headline, std::format!("craton: BUG {said}"));
        assert!(place.unwrap().starts_with("touched 0x2000, at offset "));
    }
}

#[test]
fn an_address_made_of_a_pattern_says_of_what_and_how_sure_it_is() {
    let pattern = |freed, buffers| Mistake::Pattern { value: 0xdead, freed, buffers };
    let (headline, place) = lines(pattern(true, 1), State::Freed);
    assert_eq!(headline, "craton: BUG use-after-free: used a word of a freed buffer as an address");
    assert!(place.unwrap().ends_with(", as this buffer has it, to which a register leads"));
    let (headline, place) = lines(pattern(false, 3), State::Live);
    assert!(headline.starts_with("craton: BUG uninitialised: used an unwritten word"));
    let place = place.unwrap();
    assert!(place.contains(", as 3 buffers have it to which registers lead: this is one of them"));
}

#[test]
fn moments_are_seconds_and_how_long_ago() {
    let said = |time, began| text(at(Line::new(), time, began));
    assert_eq!(said(1_500_000_000, 3_750_001_000), " at 1.500000 s, 2.250001 s ago");
    assert_eq!(said(999, 0), " at 0.000000 s, 0.000000 s ago", "a clock that went back");
}

#[test]
fn owners_are_named_by_class_or_cache() {
    struct Named;
    impl Process for Named {
        fn cache_name(id: u16) -> Option<[u8; craton_objects::caches::NAME_MAX + 1]> {
            let mut name = [0; craton_objects::caches::NAME_MAX + 1];
            name[0] = b'a' + id as u8;
            Some(name)
        }
    }
    let kit = std::boxed::Box::new(Kit::<Named>::new());
    let owner = |target, size| text(kit.owner(Line::new(), target, size));
    assert_eq!(owner(Target::MALLOC, 100), "class of 112");
    assert_eq!(owner(Target::MALLOC, 1 << 20), "large");
    assert_eq!(owner(Target::cache(2), 100), "cache \"c\"");
    assert_eq!((Target::cache(2).id(), Target::MALLOC.id()), (Some(2), None));
}

#[test]
fn each_misuse_has_words_of_its_own() {
    let all = [
        Misuse::Freed { size: 1 },
        Misuse::WrongSize { given: 1, size: 2 },
        Misuse::WrongAlign { given: 3 },
        Misuse::OtherHeap,
        Misuse::NoHeap,
        Misuse::HeapDestroyed,
        Misuse::HeapStays,
        Misuse::NoCache,
        Misuse::CacheDestroyed,
        Misuse::OfCache { cache: 1 },
        Misuse::OtherCache { its: 1, given: 2 },
        Misuse::NotCached { given: 1 },
        Misuse::Inside { offset: 1, size: 2 },
        Misuse::Unallocated,
        Misuse::Foreign,
    ];
    let mut texts: Vec<_> = all.into_iter().map(brief).collect();
    texts.sort_unstable();
    texts.dedup();
    assert_eq!(texts.len(), all.len());
}

#[test]
fn leaks_of_one_place_are_summed() {
    let line = |same, bytes, buffers, held| text(leak_line(&Lost { same, bytes, buffers, held }));
    assert_eq!(line(1, 24, 0, 0), "craton: BUG leak: nothing leads to a buffer");
    assert_eq!(
        line(3, 80, 1, 10),
        "craton: BUG leak: nothing leads to a buffer and to 2 more that were allocated there, 80 bytes in all; \
         1 buffer of 10 bytes hangs on it"
    );
    assert!(line(1, 1, 2, 20).ends_with("; 2 buffers of 20 bytes hang on it"));
}
