//! A whole test program on Craton: its own harness, threads and output included.

use std::alloc::{GlobalAlloc, Layout};
use std::collections::HashMap;

#[global_allocator]
static ALLOCATOR: craton::Craton = craton::Craton;

fn refills() -> u64 {
    craton_malloc::segment::SEGMENT.refills.load(std::sync::atomic::Ordering::Relaxed)
}

#[test]
fn collections_and_threads_live_on_craton() {
    let before = refills();
    let sums: Vec<u64> = (0..8)
        .map(|t| {
            std::thread::spawn(move || {
                let map: HashMap<u64, String> = (0..5_000).map(|i| (i, format!("{t}-{i}"))).collect();
                map.values().map(|v| v.len() as u64).sum()
            })
        })
        .collect::<Vec<_>>()
        .into_iter()
        .map(|t| t.join().unwrap())
        .collect();
    assert!(sums.iter().all(|s| *s == sums[0]));
    assert!(refills() > before + 100, "somebody else served this program");
}

#[test]
fn layouts_of_any_alignment_are_kept_by_realloc() {
    for align in [1, 16, 64, 4096, 8192, 1 << 16, 1 << 21, 1 << 22] {
        let layout = Layout::from_size_align(100, align).unwrap();
        // SAFETY: sizes are not 0, and each pointer is used within its size and freed with its layout.
        unsafe {
            let first = ALLOCATOR.alloc_zeroed(layout);
            assert_eq!(first as usize % align, 0);
            assert!((0..100).all(|i| *first.add(i) == 0));
            first.write_bytes(7, 100);
            let second = ALLOCATOR.realloc(first, layout, 1 << 20);
            assert_eq!(second as usize % align, 0);
            assert!((0..100).all(|i| *second.add(i) == 7));
            ALLOCATOR.dealloc(second, Layout::from_size_align(1 << 20, align).unwrap());
        }
    }
}
