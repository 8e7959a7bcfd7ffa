//! Threads that repeat a turn on a heap for a time, after a warm-up. The caller's thread is the
//! application's timer. On a heap that counts, one thread does the turns of [`Pace::turns`].

use super::task::Figures;
use super::{Heap, Refused, space};
use std::path::PathBuf;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

#[derive(Clone, Debug)]
pub struct Pace {
    /// At least one turn.
    pub warm: Duration,
    pub run: Duration,
    /// Uncounted, and counted.
    pub turns: (u64, u64),
    pub file: PathBuf,
}

/// Between readings of the space.
const PERIOD: Duration = Duration::from_millis(2);
/// Between calls of `maintain`.
const MAINTAIN_MS: u64 = 50;

/// Returns its operations.
pub type Turn<'a> = Box<dyn FnMut() -> Result<u64, Refused> + 'a>;

/// `make` makes each thread's turn, unmeasured.
pub fn race<'a, H: Heap>(
    heap: &'a H,
    pace: &Pace,
    threads: u64,
    make: impl Fn(u64) -> Result<Turn<'a>, Refused> + Sync,
) -> Result<Figures, Refused> {
    if let Some(count) = heap.count() {
        let mut turn = make(0)?;
        for _ in 0..pace.turns.0 {
            turn()?;
        }
        count.reset(0);
        let operations = (0..pace.turns.1).try_fold(0, |sum, _| Ok(sum + turn()?))?;
        return Ok(counts(count.counters(), operations));
    }
    let (barrier, running) = (Barrier::new(threads as usize), AtomicUsize::new(threads as usize));
    let one = |number: u64| {
        let turn = make(number);
        barrier.wait();
        let rate = turn.and_then(|mut turn| {
            repeat(&mut turn, pace.warm)?;
            repeat(&mut turn, pace.run)
        });
        running.fetch_sub(1, Relaxed);
        rate
    };
    thread::scope(|scope| {
        let one = &one;
        let threads: Vec<_> = (0..threads).map(|number| scope.spawn(move || one(number))).collect();
        let (start, mut maintained, mut peak) = (Instant::now(), 0, 0);
        while running.load(Relaxed) > 0 {
            thread::sleep(PERIOD);
            peak = peak.max(space::backed(&pace.file));
            let now_ms = start.elapsed().as_millis() as u64;
            if now_ms >= maintained + MAINTAIN_MS {
                heap.maintain(now_ms);
                maintained = now_ms;
            }
        }
        let mut rate = 0.0;
        for thread in threads {
            rate += thread.join().expect("no thread panics")?;
        }
        Ok(Figures::from([
            ("ns_per_op".to_owned(), 1e9 / rate),
            ("peak_bytes".to_owned(), peak.max(space::backed(&pace.file)) as f64),
        ]))
    })
}

fn repeat(turn: &mut Turn<'_>, time: Duration) -> Result<f64, Refused> {
    let (start, mut operations) = (Instant::now(), 0);
    loop {
        operations += turn()?;
        let elapsed = start.elapsed();
        if elapsed >= time {
            return Ok(operations as f64 / elapsed.as_secs_f64());
        }
    }
}

pub fn counts(counters: craton_sim::Counters, operations: u64) -> Figures {
    let flushes = counters.flushes + counters.line_stores;
    let near: u64 = counters.reflushes.iter().sum();
    let each = |n: u64| n as f64 / operations.max(1) as f64;
    let share = |n: u64| n as f64 / flushes.max(1) as f64;
    [
        ("operations", operations as f64),
        ("flushes_per_op", each(flushes)),
        ("fences_per_op", each(counters.fences)),
        ("modelled_ns_per_op", each(counters.modelled_ns)),
        // Shares of the flushes.
        ("reflushes", share(near)),
        ("reflushes_at_0", share(counters.reflushes[0])),
        ("sequential", share(counters.sequential)),
        ("random", share(counters.random)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}
