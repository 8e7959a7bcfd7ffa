use super::*;
use crate::SimMedium;

#[test]
fn the_reflush_distance_counts_distinct_lines_in_between() {
    let medium = SimMedium::new(1 << 16, 1 << 16);
    // A, B, C, D, A: the paper's distance 3.
    for page in [0, 1, 2, 3, 0, 0, 2, 4, 5, 6, 7, 0] {
        medium.flush(4096 * page);
    }
    let Counters { reflushes, random, sequential, modelled_ns, flushes, .. } = medium.counters();
    assert_eq!(reflushes, [1, 0, 1, 1]);
    assert_eq!((flushes, random, sequential), (12, 9, 0));
    assert_eq!(modelled_ns, 500 + 800 + 600 + 9 * 217);
}

#[test]
fn neighbouring_lines_are_written_in_sequence() {
    let medium = Counted::new(SimMedium::new(1 << 16, 1 << 16), Latency::PAPER);
    (0..16).for_each(|line| medium.store_line(64 * line, &[1; 8]));
    let Counters { random, sequential, line_stores, modelled_ns, .. } = medium.counters();
    assert_eq!((line_stores, random, sequential), (16, 1, 15));
    assert_eq!(modelled_ns, 217 + 15 * 93);
    medium.fence();
    assert_eq!(medium.counters().fences, 1);
    assert_eq!(medium.inner().counters().fences, 1, "passed on");
}

#[test]
fn threads_have_distances_of_their_own() {
    let medium = SimMedium::new(1 << 16, 1 << 16);
    medium.flush(0);
    let other = medium.clone();
    thread::spawn(move || other.flush(0)).join().unwrap();
    assert_eq!(medium.counters().reflushes, [0; 4]);
}

#[test]
fn flush_addresses_are_kept_and_summed() {
    let medium = SimMedium::new(1 << 16, 1 << 16);
    [0, 70, 4096, 4100, 8192].into_iter().for_each(|at| medium.flush(at));
    assert_eq!(medium.first_flushes(), [0, 64, 4096, 4096, 8192]);
    assert_eq!(medium.histogram(4096), BTreeMap::from([(0, 2), (4096, 2), (8192, 1)]));
    medium.reset_counters(1);
    [64, 0].into_iter().for_each(|at| medium.flush(at));
    assert_eq!((medium.first_flushes(), medium.counters().flushes), (vec![64], 2));
}
