//! A Rust program whose global allocator is Craton. It checks what it allocates, and prints what Craton counted.

use std::collections::HashMap;
use std::thread;

#[global_allocator]
static ALLOCATOR: craton::Craton = craton::Craton;

/// Bytes on the boundary of a cache line pair, which no type of std asks for.
#[repr(align(128))]
struct Line([u8; 128]);

fn churn(seed: u64) -> usize {
    let mut words: HashMap<String, Vec<Box<Line>>> = HashMap::new();
    let mut state = seed;
    for _ in 0..20_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let list = words.entry((state >> 54).to_string()).or_default();
        list.push(Box::new(Line([(state >> 40) as u8; 128])));
        if list.len() > 20 {
            list.clear();
            list.shrink_to_fit();
        }
    }
    for line in words.values().flatten() {
        assert!((&raw const **line).is_aligned() && line.0.iter().all(|b| *b == line.0[0]));
    }
    words.values().map(Vec::len).sum()
}

fn main() {
    let threads: Vec<_> = (1..=8).map(|seed| thread::spawn(move || churn(seed))).collect();
    let lines: usize = threads.into_iter().map(|t| t.join().expect("a thread ends well")).sum();
    let mut numbers = Vec::new();
    for i in 0..3_000_000_u64 {
        numbers.push(i);
    }
    assert_eq!(numbers.iter().sum::<u64>(), 3_000_000 * 2_999_999 / 2);
    let zeros = vec![0_u8; 50 << 20];
    assert!(zeros.iter().all(|b| *b == 0));
    println!("{lines} lines");
}
