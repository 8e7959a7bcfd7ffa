use super::*;
use crate::memory::{Map, Thread};

/// 16 bytes that are held, 4080 zeros, a page to be fetched, and nothing.
struct Made {
    held: [u8; 16],
    fetched: Vec<u8>,
}

const AT: u64 = 0x1_0000;

impl Memory for Made {
    fn held(&self, at: u64) -> Held<'_> {
        match at - AT {
            into @ 0..16 => Held::Bytes(&self.held[into as usize..]),
            into @ 16..PAGE => Held::Zeros(PAGE - into),
            _ => Held::Elsewhere,
        }
    }

    fn read(&self, at: u64, into: &mut [u8]) -> usize {
        let mut done = 0;
        for (i, byte) in into.iter_mut().enumerate() {
            let from = (at - AT) as usize + i;
            *byte = match from {
                0..16 => self.held[from],
                16..4096 => 0,
                _ => match self.fetched.get(from - 4096) {
                    Some(byte) => *byte,
                    None => break,
                },
            };
            done += 1;
        }
        done
    }

    fn maps(&self) -> &[Map] {
        &[]
    }

    fn threads(&self) -> &[Thread] {
        &[]
    }

    fn name(&self) -> String {
        "a made-up process".to_owned()
    }

    fn pid(&self) -> u32 {
        1
    }
}

fn made() -> Made {
    Made { held: std::array::from_fn(|i| i as u8 + 1), fetched: (0..8192).map(|i| (i / 8) as u8).collect() }
}

#[test]
fn words_come_from_the_copy_and_else_from_the_process_without_its_zeros() {
    let memory = made();
    let reader = Reader::new(&memory);
    let mut words = Vec::new();
    reader.for_each_word(AT + 1, AT + PAGE + 20, |at, word| words.push((at - AT, word)));
    assert_eq!(
        words,
        [(8, u64::from_le_bytes([9, 10, 11, 12, 13, 14, 15, 16])), (4096, 0), (4104, 0x0101_0101_0101_0101)]
    );
    words.clear();
    reader.for_each_word(AT, AT + 7, |at, word| words.push((at, word)));
    assert_eq!(words, [], "no whole word");
}

#[test]
fn reads_cross_pages_and_end_at_what_cannot_be_read() {
    let memory = made();
    let reader = Reader::new(&memory);
    let mut bytes = vec![0xaa; 3 * 4096];
    assert!(reader.read(AT, &mut bytes));
    assert_eq!((bytes[0], bytes[15], bytes[16], bytes[4096 + 8], bytes[4096 + 4095]), (1, 16, 0, 1, 255));
    let mut bytes = vec![0xaa; 3 * 4096];
    assert!(!reader.read(AT + 4096 + 100, &mut bytes));
    assert_eq!((bytes[0], bytes[8191 - 100], bytes[8192 - 100]), (12, 255, 0xaa), "unreadable bytes stay");
    assert_eq!(reader.word(AT + 4096 + 8), Ok(0x0101_0101_0101_0101));
    assert!(reader.word(AT + 4096 * 4).is_err());
}
