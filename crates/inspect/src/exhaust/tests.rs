use super::*;

/// Numbers below a bound, as a tree: `n` leads to `2n + 1` and `2n + 2`.
fn visited(bound: usize, threads: usize) -> Vec<usize> {
    let seen: Vec<AtomicUsize> = (0..bound).map(|_| AtomicUsize::new(0)).collect();
    let step = || {
        |open: &mut Vec<usize>| {
            let n = open.pop().unwrap();
            seen[n].fetch_add(1, Relaxed);
            open.extend([2 * n + 1, 2 * n + 2].into_iter().filter(|n| *n < bound));
        }
    };
    exhaust(vec![0], threads, step);
    seen.into_iter().map(AtomicUsize::into_inner).collect()
}

#[test]
fn each_item_is_visited_once_by_any_number_of_threads() {
    for threads in [1, 2, 3, 8] {
        assert!(visited(100_000, threads).iter().all(|times| *times == 1), "{threads} threads");
    }
    assert!(visited(1, 4) == [1]);
}

#[test]
fn nothing_to_do_ends_at_once() {
    exhaust(Vec::<u8>::new(), 4, || |_: &mut Vec<u8>| panic!("there is no item"));
}

#[test]
fn a_chain_gives_the_others_nothing_and_ends() {
    let step = || {
        |open: &mut Vec<u32>| {
            let n = open.pop().unwrap();
            open.extend((n > 0).then(|| n - 1));
        }
    };
    exhaust(vec![10_000], 4, step);
}

#[test]
fn a_waiting_thread_gets_half_of_a_long_stack() {
    let pool = Pool {
        threads: 2,
        state: Mutex::new(State { stacks: vec![], waiting: 0 }),
        changed: Condvar::new(),
        wanted: AtomicUsize::new(0),
    };
    thread::scope(|scope| {
        let other = scope.spawn(|| pool.next());
        while pool.wanted.load(Relaxed) == 0 {
            thread::yield_now();
        }
        pool.leave(vec![7]);
        assert_eq!(other.join().unwrap(), Some(vec![7]));
    });
    assert_eq!(pool.wanted.load(Relaxed), 0);
}
