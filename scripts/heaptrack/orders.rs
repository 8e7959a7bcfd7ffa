//! A store of records: keys, values, and requests that live briefly.
use std::collections::HashMap;

#[inline(never)]
fn key(number: u64) -> String {
    format!("customer/{:012}/orders/{:06}", number, number % 977)
}

#[inline(never)]
fn value(number: u64) -> Vec<u8> {
    vec![number as u8; 200 + (number % 300) as usize]
}

#[inline(never)]
fn remember(history: &mut Vec<Box<[u64; 8]>>, number: u64) {
    history.push(Box::new([number; 8]));
}

#[inline(never)]
fn request(number: u64) -> String {
    "x".repeat(30 + (number % 50) as usize)
}

fn main() {
    let mut store: HashMap<String, Vec<u8>> = HashMap::new();
    let mut history = Vec::new();
    let (mut state, mut sum) = (1u64, 0);
    for number in 0..120_000 {
        for _ in 0..10 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            sum += request(state >> 33).len();
        }
        let place = key(state >> 48);
        let found = store.entry(place).or_insert_with(|| value(number));
        sum += found.iter().map(|byte| *byte as usize).sum::<usize>();
        remember(&mut history, number);
    }
    println!("{} {} {}", sum, store.len(), history.len());
}
