//! Craton as global allocator; with an argument, keeps one object and loses another.

use std::collections::HashMap;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::thread;

#[global_allocator]
static ALLOCATOR: craton::Craton = craton::Craton;

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

static KEPT: AtomicPtr<u8> = AtomicPtr::new(null_mut());

#[inline(never)]
fn leak(byte: u8) -> *mut u8 {
    // A whole size class: behind fewer bytes lie words of an earlier object.
    Box::leak(vec![byte; 3264].into_boxed_slice()).as_mut_ptr()
}

/// Overwrites the stack of earlier calls.
#[inline(never)]
fn wipe() {
    std::hint::black_box(&mut [0_u8; 32768]);
}

#[inline(never)]
fn keep_and_lose() {
    KEPT.store(leak(1), Ordering::Relaxed);
    println!("kept {:p}", KEPT.load(Ordering::Relaxed));
    println!("lost {:p}", leak(2));
}

fn main() {
    if std::env::args().nth(1).is_some_and(|what| what == "waits") {
        // So that the heap knows: this program frees by size.
        thread::spawn(|| churn(1)).join().expect("a thread ends well");
        keep_and_lose();
        wipe();
        println!("ready");
        std::io::stdin().read_line(&mut String::new()).expect("the input can be read");
        return;
    }
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
