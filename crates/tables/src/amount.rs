//! Numbers and sizes in the values of options.

/// Digits alone, below 2^64.
#[inline(never)]
pub fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |n, b| {
        let digit = b.is_ascii_digit().then(|| u64::from(b - b'0'))?;
        n.checked_mul(10)?.checked_add(digit)
    })
}

/// With `K`, `M`, `G` or `T` (`KiB` …, `KB` …, in any case) for powers of 1024; below 2^64.
pub fn size(text: &[u8]) -> Option<u64> {
    let end = text.iter().position(|b| !b.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let number = decimal(digits)?;
    let shift = match unit {
        [] => 0,
        [letter, rest @ ..] => {
            if !rest.is_empty() && !rest.eq_ignore_ascii_case(b"B") && !rest.eq_ignore_ascii_case(b"iB") {
                return None;
            }
            match letter.to_ascii_uppercase() {
                b'K' => 10,
                b'M' => 20,
                b'G' => 30,
                b'T' => 40,
                _ => return None,
            }
        }
    };
    number.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_or_none() {
        for (text, bytes) in [
            ("0", 0),
            ("123", 123),
            ("4K", 4096),
            ("4k", 4096),
            ("2M", 2 << 20),
            ("2MiB", 2 << 20),
            ("2mb", 2 << 20),
            ("3G", 3 << 30),
            ("1TiB", 1 << 40),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(size(text.as_bytes()), Some(bytes), "{text}");
        }
        for text in
            ["", "K", "-1", "1.5G", "1 K", "1KK", "1KiBx", "1B", "1P", "18446744073709551616", "16777216T", "１"]
        {
            assert_eq!(size(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn what_is_no_number_or_does_not_fit_is_refused() {
        assert_eq!(decimal(b"0007"), Some(7));
        for text in ["", " 1", "1 ", "-1", "+1", "1x", "0x1", "1_0", "18446744073709551616", "99999999999999999999"] {
            assert_eq!(decimal(text.as_bytes()), None, "{text}");
        }
    }
}
