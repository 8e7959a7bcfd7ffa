//! Numbers in decimal, written without memory.

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

    pub fn as_bytes(&self) -> &[u8] {
        &self.digits[self.from..]
    }
}

#[cfg(test)]
mod tests;
