//! Text for a buffer of the program's, as `snprintf` makes it: what does not fit is cut, and counted.

use craton_os::Decimal;

/// A text under construction.
pub struct Text<'a> {
    buffer: &'a mut [u8],
    len: usize,
}

impl<'a> Text<'a> {
    /// An empty text in a buffer, which may be empty.
    pub fn new(buffer: &'a mut [u8]) -> Self {
        Self { buffer, len: 0 }
    }

    /// Adds bytes.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        let room = self.buffer.len().saturating_sub(self.len);
        let n = bytes.len().min(room);
        if n > 0 {
            self.buffer[self.len..self.len + n].copy_from_slice(&bytes[..n]);
        }
        self.len += bytes.len();
        self
    }

    /// Adds text.
    pub fn text(&mut self, text: &str) -> &mut Self {
        self.bytes(text.as_bytes())
    }

    /// Adds a number in decimal.
    pub fn number(&mut self, n: u64) -> &mut Self {
        self.bytes(Decimal::new(n).as_bytes())
    }

    /// Adds a string of JSON, quotes included. Bytes that are no ASCII become question marks: what encoding they are in is not known.
    pub fn string(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes(b"\"");
        for byte in bytes {
            match byte {
                b'"' | b'\\' => self.bytes(&[b'\\', *byte]),
                b' '..=b'~' => self.bytes(&[*byte]),
                _ => self.bytes(b"?"),
            };
        }
        self.bytes(b"\"")
    }

    /// Ends the text with a 0, on the buffer's last byte if it was cut; returns its whole length without the 0.
    pub fn end(self) -> usize {
        if let Some(last) = self.buffer.len().checked_sub(1) {
            self.buffer[self.len.min(last)] = 0;
        }
        self.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_cut_and_counted() {
        for size in 0..20 {
            let mut buffer = [b'#'; 20];
            let mut text = Text::new(&mut buffer[..size]);
            text.text("abc").number(1234567890).bytes(b"x");
            assert_eq!(text.end(), 14);
            let n = size.saturating_sub(1).min(14);
            assert_eq!(&buffer[..n], &b"abc1234567890x"[..n]);
            assert!(size == 0 || buffer[n] == 0);
            assert!(buffer[size..].iter().all(|b| *b == b'#'));
        }
    }

    #[test]
    fn strings_are_escaped() {
        let mut buffer = [0; 64];
        let mut text = Text::new(&mut buffer);
        text.string(b"a\"b\\c\n\xff");
        let len = text.end();
        assert_eq!(&buffer[..len], br#""a\"b\\c??""#);
    }
}
