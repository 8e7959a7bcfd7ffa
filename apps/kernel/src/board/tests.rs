use super::{Board, offset_in_file};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};

fn states(len: usize) -> Vec<AtomicU8> {
    (0..len).map(|_| AtomicU8::new(0)).collect()
}

#[test]
fn a_frame_goes_to_the_host_and_comes_back() {
    let states = states(2);
    let board = Board::new(&states);
    assert!(!board.begin_taking(0), "it was not offered");
    board.offer(0);
    assert!(board.begin_taking(0) && !board.begin_taking(0));
    board.end_taking(0);
    assert_eq!(board.taken(), 1);
    assert!(board.take_back(0), "its memory is gone");
    assert!(!board.take_back(0));
    board.offer(1);
    assert!(!board.take_back(1), "the host had not come");
    assert!(!board.begin_taking(1));
}

#[test]
fn the_file_of_a_large_guest_has_no_hole_below_4_gib() {
    const GIB: u64 = 1 << 30;
    assert_eq!(offset_in_file(3 * GIB, 3 * GIB + GIB / 4), 3 * GIB);
    assert_eq!(offset_in_file(3 * GIB - 1, 5 * GIB), 3 * GIB - 1);
    assert_eq!([4, 5].map(|gib| offset_in_file(gib * GIB, 5 * GIB)), [3 * GIB, 4 * GIB]);
}

/// A word stands for each frame's memory.
#[test]
fn the_host_never_drops_what_the_guest_uses() {
    const FRAMES: usize = 4;
    let states = states(FRAMES);
    let board = Board::new(&states);
    let memory: Vec<AtomicU32> = (0..FRAMES).map(|_| AtomicU32::new(0)).collect();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                for frame in (0..FRAMES).filter(|frame| board.begin_taking(*frame)) {
                    memory[frame].store(0, Ordering::Relaxed);
                    board.end_taking(frame);
                }
            }
        });
        for round in 1..20_000_u32 {
            let frame = round as usize % FRAMES;
            board.offer(frame);
            std::hint::spin_loop();
            board.take_back(frame);
            memory[frame].store(round, Ordering::Relaxed);
            assert_eq!(memory[frame].load(Ordering::Relaxed), round);
        }
        is_over.store(true, Ordering::Relaxed);
    });
}
