//! Text for the program's buffer, cut and counted as by `snprintf`.

use craton_os::Decimal;

pub struct Text<'a> {
    buffer: &'a mut [u8],
    len: usize,
}

impl<'a> Text<'a> {
    pub fn new(buffer: &'a mut [u8]) -> Self {
        Self { buffer, len: 0 }
    }

    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        let room = self.buffer.len().saturating_sub(self.len);
        let n = bytes.len().min(room);
        if n > 0 {
            self.buffer[self.len..self.len + n].copy_from_slice(&bytes[..n]);
        }
        self.len += bytes.len();
        self
    }

    pub fn text(&mut self, text: &str) -> &mut Self {
        self.bytes(text.as_bytes())
    }

    pub fn number(&mut self, n: u64) -> &mut Self {
        self.bytes(Decimal::new(n).as_bytes())
    }

    /// Quoted for JSON. The encoding is unknown: non-ASCII bytes become question marks.
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

    /// Ends with a 0, also if cut; returns the full length.
    pub fn end(self) -> usize {
        if let Some(last) = self.buffer.len().checked_sub(1) {
            self.buffer[self.len.min(last)] = 0;
        }
        self.len
    }
}

#[cfg(test)]
mod tests;
