//! Text made safe to print: control characters (U+0080 to U+009F too) and invalid UTF-8 become
//! question marks.

/// The length stays.
pub fn make_plain(text: &mut [u8]) {
    let mut at = 0;
    while at < text.len() {
        let rest = &mut text[at..];
        let valid = match core::str::from_utf8(rest) {
            Ok(all) => all.len(),
            Err(error) => error.valid_up_to(),
        };
        let mut i = 0;
        while i < valid {
            let byte = rest[i];
            // U+0080 to U+009F begin with 0xc2.
            let is_two = byte == 0xc2 && (0x80..0xa0).contains(&rest[i + 1]);
            if byte.is_ascii_control() || is_two {
                rest[i..][..1 + usize::from(is_two)].fill(b'?');
            }
            i += 1;
        }
        if let Some(byte) = rest.get_mut(valid) {
            *byte = b'?';
        }
        at += valid + 1;
    }
}

#[cfg(test)]
mod tests;
