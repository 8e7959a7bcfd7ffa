extern crate std;

use crate::counters::{self, CACHE_MODES, LIMIT_SOURCES, Unit, word};
use crate::options::{Choice, Form, Key, NO_SUCH_KEY, OPTIONS};
use std::string::ToString;

#[test]
fn options_stand_by_the_alphabet_and_are_found_by_name() {
    assert!(OPTIONS.is_sorted_by(|a, b| a.key < b.key));
    for (key, row) in Key::ALL.into_iter().zip(&OPTIONS) {
        assert_eq!((Key::named(row.key.as_bytes()), key.row().key), (Some(key), row.key));
        assert!(NO_SUCH_KEY.contains(row.key));
    }
    assert_eq!(Key::named(b"no_such_key"), None);
    assert_eq!(Key::named(b"thp="), None);
    assert!(NO_SUCH_KEY.starts_with("no such key (keys: audit_log, background, caches, "));
    assert!(NO_SUCH_KEY.ends_with(", thread_cache, trace, trace_events); ignored"));
}

#[test]
fn a_refusal_names_every_word_that_the_option_takes() {
    for Choice { key, form, refusal, .. } in OPTIONS.iter().filter(|o| !matches!(o.form, Form::Checks(_))) {
        for word in form.words() {
            assert!(refusal.contains(word), "{key}: {word} is not in {refusal}");
        }
        assert!(refusal.starts_with("bad value (") && refusal.ends_with("); ignored"), "{refusal}");
    }
}

#[test]
fn defaults_are_values_and_texts_are_one_line() {
    for Choice { key, form, default, text, .. } in OPTIONS {
        let is_number = default.parse::<u64>().is_ok();
        assert!(form.words().contains(&default) || is_number || form == Form::Path && default.is_empty(), "{key}");
        assert!(!text.is_empty() && text.len() <= 120 && !text.contains('\n'), "{key}: {text}");
    }
}

#[test]
fn forms_are_shown_as_the_help_has_them() {
    let form = |key: &[u8]| Key::named(key).unwrap().row().form.to_string();
    assert_eq!(form(b"thp"), "auto|always|never");
    assert_eq!(form(b"soft_limit"), "none|auto|BYTES|PERCENT%");
    assert_eq!(form(b"memory_limit"), "cgroup|auto|none|BYTES");
    assert_eq!(form(b"guard_sample"), "auto|N");
    assert_eq!((form(b"trace"), form(b"pressure")), ("PATH".to_string(), "PERCENT".to_string()));
}

#[test]
fn every_code_has_a_word_and_a_new_one_is_unknown() {
    assert_eq!(
        (word(CACHE_MODES, 0), word(CACHE_MODES, 2), word(CACHE_MODES, 3)),
        ("none", "compact-numbers", "unknown")
    );
    assert_eq!((word(LIMIT_SOURCES, 0), word(LIMIT_SOURCES, 4)), ("not-read", "option"));
    let codes = counters::PROCESS.iter().filter(|c| c.unit == Unit::Code);
    for code in codes {
        let word = std::format!("{}_name", code.name);
        assert!(counters::TEXTS.iter().any(|text| text.name == word), "{word}");
    }
}

#[test]
fn the_segment_keeps_its_layout() {
    let names: std::vec::Vec<&str> = counters::PROCESS.iter().map(|c| c.name).collect();
    assert_eq!(names.len(), 49);
    assert_eq!(
        (names[0], names[5], names[9], names[19], names[20], names[48]),
        ("pid", "heap_in_use_bytes", "huge_bytes", "memory_limit_source", "granted_bytes", "resident_huge_bytes")
    );
    assert_eq!((counters::HEAP.len(), counters::CACHE.len(), counters::CACHE[8].name), (7, 23, "failures"));
}
