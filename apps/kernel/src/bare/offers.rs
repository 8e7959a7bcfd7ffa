//! The host takes back what the guest does not use, and the guest uses it again.

use super::checks;
use super::machine::{self, ticks};
use super::physical::Memory;
use super::serial::{fail, report};
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use craton_frames::{Kind, Request};
use craton_kernel::board::{Board, HEAD, MAGIC};
use craton_kernel::memory::FRAME;

const HUGE: usize = 512;
const WAIT_TICKS: u64 = 1 << 36;
/// A tenth of a second: the host reads how much memory an idle guest has.
const REST_TICKS: u64 = 1 << 28;
const ROUNDS: usize = 3;

pub fn run(memory: &Memory, count: usize, held: usize) {
    let request = Request { order: 0, kind: Kind::Unmovable, processor: 0 };
    let home = memory.zone.get(request).unwrap_or_else(|error| fail!("the board: {error}"));
    let frames = (memory.plan.frames / HUGE).min(FRAME as usize - HEAD);
    let at = memory.pointer(home);
    // SAFETY: the frame is held, mapped to itself; the host changes states alone, by atomics.
    let (head, states) = unsafe {
        at.write_bytes(0, FRAME as usize);
        let head = core::slice::from_raw_parts(at.cast::<AtomicU64>(), HEAD / 8);
        (head, core::slice::from_raw_parts(at.add(HEAD).cast::<AtomicU8>(), frames))
    };
    let board = Board::new(states);
    head[1].store(memory.plan.base, Ordering::Relaxed);
    head[2].store(frames as u64, Ordering::Relaxed);
    // ORDERING: the host reads the rest after the magic.
    head[0].store(MAGIC, Ordering::Release);
    report!("board", "address": memory.plan.address_of(home), "huge_frames": frames);
    for round in 0..ROUNDS {
        let offered = offer_all(memory, &board, count);
        let begin = ticks();
        while board.taken() < offered {
            if ticks() - begin > WAIT_TICKS {
                fail!("the host took {} of {offered} huge frames that were offered", board.taken());
            }
            core::hint::spin_loop();
        }
        report!("taken", "round": round, "huge_frames": offered);
        machine::wait(REST_TICKS);
        for frame in 0..frames {
            if board.take_back(frame)
                && let Err(error) = memory.zone.online(frame * HUGE, 1)
            {
                fail!("huge frame {frame} comes back: {error}");
            }
        }
        checks::run(memory, count, held + 1, false);
        report!("used_again", "round": round);
    }
    if let Err(error) = memory.zone.put(home, request) {
        fail!("the board: {error}");
    }
}

fn offer_all(memory: &Memory, board: &Board<'_>, count: usize) -> usize {
    for cpu in 0..count {
        if let Err(error) = memory.zone.drain(cpu) {
            fail!("CPU {cpu}: {error}");
        }
    }
    let mut offered = 0;
    while let Some(frame) = memory.zone.reclaim(0) {
        if frame / HUGE >= board.len() {
            // The search begins with the lowest: all others are beyond the board, too.
            if let Err(error) = memory.zone.online(frame, 1) {
                fail!("huge frame at {frame}: {error}");
            }
            break;
        }
        board.offer(frame / HUGE);
        offered += 1;
    }
    offered
}
