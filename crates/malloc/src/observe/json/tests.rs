use super::*;
use craton_tables::options::OPTIONS;
use std::string::String;
use std::vec;

fn document() -> String {
    let mut buffer = vec![0; 256 << 10];
    let len = write(&mut buffer);
    assert!(len < buffer.len(), "{len} bytes");
    String::from_utf8(buffer[..len].to_vec()).unwrap()
}

fn is_balanced(text: &str) -> bool {
    let (mut open, mut in_string, mut escaped) = (vec![], false, false);
    for c in text.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' if in_string => escaped = true,
            '"' => in_string = !in_string,
            '{' | '[' if !in_string => open.push(c),
            '}' if !in_string && open.pop() != Some('{') => return false,
            ']' if !in_string && open.pop() != Some('[') => return false,
            _ => {}
        }
    }
    open.is_empty() && !in_string
}

#[test]
fn the_document_has_every_number_option_and_list() {
    let object = crate::front::malloc(100);
    let text = document();
    assert!(is_balanced(&text), "{text}");
    for (name, _) in SEGMENT.numbers() {
        assert!(text.contains(&std::format!("\"{name}\":")), "{name}");
    }
    for option in OPTIONS {
        assert!(text.contains(&std::format!("\"{}\":\"", option.key)), "{}", option.key);
    }
    for list in ["classes", "heaps", "caches"] {
        assert!(text.contains(&std::format!("\"{list}\":[")), "{list}");
    }
    assert!(text.contains("\"object_bytes\":112,"), "a class that is used");
    // SAFETY: ours.
    unsafe { crate::front::free(object) }.unwrap();
}

#[test]
fn a_buffer_that_is_too_short_gets_the_beginning_and_the_length_is_that_of_the_whole() {
    let whole = write(&mut []);
    let mut short = [0xff; 40];
    assert!(write(&mut short) >= whole / 2 && whole > 1000);
    assert!(short.starts_with(b"{\"version\":") && !short[..39].contains(&0xff));
}
