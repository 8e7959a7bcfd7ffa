//! Numbers that a seed repeats.

pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// Short, long, with a common prefix, binary.
    pub fn key(&mut self, n: u64) -> Vec<u8> {
        let i = self.below(n);
        match i % 5 {
            0 => format!("key:{i:012}").into_bytes(),
            1 => i.to_le_bytes().to_vec(),
            2 => format!("{}{i}", "a long beginning that many keys have in common, ".repeat(1 + i as usize % 3))
                .into_bytes(),
            3 => vec![0; (i / 5 % 70) as usize],
            _ => vec![b'x'; 1 + (i % 3) as usize].into_iter().chain(i.to_be_bytes()).collect(),
        }
    }

    pub fn value(&mut self) -> Vec<u8> {
        let len = self.below(40) as usize;
        let first = self.next() as u8;
        (0..len).map(|i| first.wrapping_add(i as u8)).collect()
    }
}
