//! Names of caches, safe in reports, statistics and `debug=` targets.

use super::NAME_MAX;

pub fn is_name(name: &[u8]) -> bool {
    name.len() <= NAME_MAX
        && core::str::from_utf8(name).is_ok_and(|n| !n.chars().any(is_refused))
        && !is_number(name)
        && !matches!(name, b"large" | b"malloc")
}

fn is_refused(c: char) -> bool {
    let shows_otherwise = matches!(c,
        // Soft hyphen, directions, line separators, zero width.
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    c.is_control() || shows_otherwise || matches!(c, '"' | '\\' | ':' | '+' | ',' | '=')
}

/// Valid or not: `64`, `-1`, `64K`, `0x40`.
pub fn is_number(text: &[u8]) -> bool {
    let text = text.strip_prefix(b"-").unwrap_or(text);
    let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
    let rest = &text[digits..];
    let is_hex = text.first() == Some(&b'0')
        && rest
            .split_first()
            .is_some_and(|(x, hex)| digits == 1 && x | 0x20 == b'x' && hex.iter().all(u8::is_ascii_hexdigit));
    let unit = rest.strip_suffix(b"B").or_else(|| rest.strip_suffix(b"b")).unwrap_or(rest);
    let unit = unit.strip_suffix(b"i").unwrap_or(unit);
    digits > 0 && (is_hex || unit.is_empty() || unit.len() == 1 && b"kmgt".contains(&(unit[0] | 0x20)))
}

#[cfg(all(test, not(loom)))]
mod tests;
