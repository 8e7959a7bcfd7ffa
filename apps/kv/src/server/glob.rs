//! Patterns of `SCAN … MATCH`: `*`, `?`, `[a-c]`, `[^a]`, and `\` before a plain character.

pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    // The last `*`, and the text behind its match.
    let mut star: Option<(usize, usize)> = None;
    loop {
        if pattern.get(p) == Some(&b'*') {
            star = Some((p + 1, t));
            p += 1;
            continue;
        }
        match text.get(t) {
            None if p == pattern.len() => return true,
            Some(byte) if p < pattern.len() => {
                if let Some(next) = one(pattern, p, *byte) {
                    (p, t) = (next, t + 1);
                    continue;
                }
            }
            _ => {}
        }
        match star {
            Some((behind, from)) if from < text.len() => {
                star = Some((behind, from + 1));
                (p, t) = (behind, from + 1);
            }
            _ => return false,
        }
    }
}

/// Returns the next element's place if `byte` matches.
fn one(pattern: &[u8], p: usize, byte: u8) -> Option<usize> {
    match pattern[p] {
        b'?' => Some(p + 1),
        b'\\' if p + 1 < pattern.len() => (pattern[p + 1] == byte).then_some(p + 2),
        b'[' => set(pattern, p + 1, byte),
        plain => (plain == byte).then_some(p + 1),
    }
}

fn set(pattern: &[u8], mut p: usize, byte: u8) -> Option<usize> {
    let is_negated = pattern.get(p) == Some(&b'^');
    p += usize::from(is_negated);
    let mut is_in = false;
    // The pattern may end a set.
    while p < pattern.len() && pattern[p] != b']' {
        if pattern[p] == b'\\' && p + 1 < pattern.len() {
            p += 1;
        }
        let low = pattern[p];
        if pattern.get(p + 1) == Some(&b'-') && p + 2 < pattern.len() && pattern[p + 2] != b']' {
            let high = pattern[p + 2];
            is_in |= (low.min(high)..=low.max(high)).contains(&byte);
            p += 3;
        } else {
            is_in |= low == byte;
            p += 1;
        }
    }
    (is_in != is_negated).then_some((p + 1).min(pattern.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_redis() {
        for (pattern, yes, no) in [
            ("*", &["", "a", "abc"][..], &[][..]),
            ("a*c", &["ac", "abc", "abcc"], &["a", "abcd"]),
            ("h?llo", &["hello", "hallo"], &["hllo", "heello"]),
            ("h[ae]llo", &["hello", "hallo"], &["hillo"]),
            ("h[^e]llo", &["hallo"], &["hello"]),
            ("h[a-c]llo", &["hbllo"], &["hdllo"]),
            ("a\\*b", &["a*b"], &["aab"]),
            ("[\\]]", &["]"], &["\\"]),
            ("*a*b*", &["ab", "xaxbx"], &["ba"]),
            ("[abc", &["a"], &["d", "ab"]),
            ("", &[""], &["a"]),
            ("\\", &["\\"], &["a"]),
        ] {
            yes.iter().for_each(|text| assert!(matches(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}"));
            no.iter().for_each(|text| assert!(!matches(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}"));
        }
        let many = "a*".repeat(200) + "b";
        assert!(!matches(many.as_bytes(), &[b'a'; 10_000]));
    }
}
