//! Numbers in decimal, read and written without memory.

pub struct Decimal {
    digits: [u8; Decimal::MOST],
    from: usize,
}

impl Decimal {
    const MOST: usize = 20;

    #[inline(never)]
    pub fn new(number: u64) -> Self {
        let mut decimal = Self { digits: [0; Self::MOST], from: Self::MOST };
        let mut rest = number;
        loop {
            decimal.from -= 1;
            decimal.digits[decimal.from] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                return decimal;
            }
        }
    }

    /// The digits, at least one.
    pub fn as_bytes(&self) -> &[u8] {
        &self.digits[self.from..]
    }

    /// Reads a number that fits, and nothing else.
    #[inline(never)]
    pub fn parse(text: &[u8]) -> Option<u64> {
        if text.is_empty() {
            return None;
        }
        text.iter().try_fold(0u64, |n, b| {
            let digit = b.is_ascii_digit().then(|| u64::from(b - b'0'))?;
            n.checked_mul(10)?.checked_add(digit)
        })
    }
}

#[cfg(test)]
mod tests;
