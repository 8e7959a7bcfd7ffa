use super::*;
use crate::Rng;
use std::collections::HashSet;

const SIZE: u64 = 8 * PAGE_BYTES;

fn medium() -> SimMedium {
    SimMedium::new(SIZE, 4 * SIZE)
}

fn values<const FLUSHES: bool>(medium: &SimPersistent<FLUSHES>, at: u64) -> HashSet<u64> {
    medium.now().images(4096, &mut Rng::new(1)).map(|image| image.word(at)).collect()
}

#[test]
fn a_store_is_certain_after_flush_and_fence() {
    let medium = medium();
    medium.store(8, 1);
    assert_eq!(values(&medium, 8), HashSet::from([0, 1]));
    medium.flush(0);
    assert_eq!(values(&medium, 8), HashSet::from([0, 1]));
    medium.fence();
    assert_eq!(values(&medium, 8), HashSet::from([1]));
    medium.store(8, 2);
    medium.fence();
    assert_eq!(values(&medium, 8), HashSet::from([1, 2]), "no flush");
}

#[test]
fn an_update_sets_and_clears_in_one_step() {
    let medium = medium();
    medium.store(0, 0b1100);
    assert_eq!(medium.update(0, 0b0011, 0b0100), 0b1100);
    assert_eq!(medium.load(0), 0b1011);
    assert_eq!(values(&medium, 0), HashSet::from([0, 0b1100, 0b1011]));
}

#[test]
fn another_threads_fence_makes_nothing_certain() {
    let medium = medium();
    medium.store(0, 1);
    medium.flush(0);
    let other = medium.clone();
    thread::spawn(move || other.fence()).join().unwrap();
    assert_eq!(values(&medium, 0), HashSet::from([0, 1]));
    medium.fence();
    assert_eq!(values(&medium, 0), HashSet::from([1]));
}

#[test]
fn a_line_store_is_torn_until_the_fence() {
    let medium = medium();
    medium.store_line(64, &[1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(medium.now().images(4096, &mut Rng::new(1)).len(), 256);
    medium.fence();
    assert_eq!(medium.now().images(4096, &mut Rng::new(1)).len(), 1);
    assert_eq!(medium.load(64 + 56), 8);
}

#[test]
fn persistent_caches_lose_nothing_but_tear_line_stores() {
    let medium = SimCached::new(SIZE, SIZE);
    medium.record();
    medium.store(0, 1);
    medium.store(64, 2);
    medium.store_line(128, &[1, 2, 0, 0, 0, 0, 0, 0]);
    let moments = medium.take_moments();
    let images = |moment: &Moment| moment.images(4096, &mut Rng::new(1)).len();
    assert_eq!(moments.iter().map(images).collect::<Vec<_>>(), [1, 1, 1, 4, 1]);
    let news = |moment: &Moment| moment.new_images(4096, &mut Rng::new(1)).len();
    assert_eq!(moments.iter().map(news).collect::<Vec<_>>(), [1, 1, 1, 3, 0]);
    assert_eq!(moments[4].durable().word(136), 2);
}

#[test]
fn a_medium_starts_from_an_image_and_shares_nothing() {
    let medium = medium();
    medium.store(0, 1);
    let next = SimMedium::from_image(&medium.now().seen());
    assert_eq!(next.load(0), 1);
    next.store(0, 2);
    assert_eq!((medium.load(0), values(&next, 0)), (1, HashSet::from([1, 2])));
}

#[test]
fn moments_follow_each_event_and_one_can_be_kept() {
    let medium = medium();
    medium.store(0, 1);
    medium.stop_at(3);
    medium.record();
    medium.store(0, 2);
    medium.flush(0);
    medium.fence();
    let moments = medium.take_moments();
    let events: Vec<_> = moments.iter().map(Moment::event).collect();
    assert_eq!(events, [None, Some(Event::Store(0)), Some(Event::Flush(0)), Some(Event::Fence)]);
    assert_eq!(moments.iter().map(Moment::step).collect::<Vec<_>>(), [1, 2, 3, 4]);
    let stopped = medium.stopped().unwrap();
    assert_eq!((stopped.step(), stopped.unfenced_lines()), (3, vec![0]));
    assert!(medium.take_moments().is_empty());
}

#[test]
fn a_probe_runs_after_each_event() {
    let medium = medium();
    let steps = Arc::new(Mutex::new(Vec::new()));
    let (seen, other) = (steps.clone(), medium.clone());
    medium.set_probe(move |event| seen.lock().unwrap().push((event, other.steps())));
    medium.store_line(64, &[1; 8]);
    medium.fence();
    assert_eq!(*steps.lock().unwrap(), [(Event::StoreLine(64), 1), (Event::Fence, 2)]);
}

#[test]
fn a_flush_or_fence_can_be_left_out() {
    let medium = medium();
    let persist = |at, value| {
        medium.store(at, value);
        medium.flush(at);
        medium.fence();
    };
    medium.fail(Fallible::Flush, FaultRule::Nth(2));
    (0..3).for_each(|line| persist(64 * line, 1));
    assert_eq!(medium.now().unfenced_lines(), [64]);
    assert_eq!(medium.fallible_events(Fallible::Flush), 3);
    medium.fail(Fallible::Flush, FaultRule::Never);
    medium.fail(Fallible::Fence, FaultRule::Nth(1));
    persist(64, 2);
    assert_eq!(medium.now().unfenced_lines(), [64]);
    medium.fence();
    assert!(medium.now().unfenced_lines().is_empty());
    assert_eq!((medium.counters().flushes, medium.counters().fences), (4, 5));
}

#[test]
fn flushes_of_clean_lines_are_counted() {
    let medium = medium();
    medium.flush(0);
    medium.store(0, 1);
    medium.flush(0);
    medium.flush(0);
    medium.fence();
    medium.flush(0);
    assert_eq!(medium.counters().clean_flushes, 3);
}

#[test]
fn a_size_change_is_certain_and_can_be_refused() {
    let medium = medium();
    medium.store(SIZE - 8, 9);
    medium.fail(Fallible::Resize, FaultRule::Nth(2));
    medium.resize(2 * SIZE).unwrap();
    assert_eq!(medium.resize(3 * SIZE), Err(SpaceError::Full));
    assert_eq!(medium.resize(5 * SIZE), Err(SpaceError::Full), "beyond the limit");
    assert_eq!((medium.len(), medium.now().durable().len()), (2 * SIZE, 2 * SIZE));
    medium.resize(SIZE / 2).unwrap();
    medium.resize(SIZE).unwrap();
    assert_eq!(medium.load(SIZE - 8), 0);
    assert!(medium.now().unfenced_lines().is_empty());
}

#[test]
fn a_discard_may_be_undone_until_the_page_is_used() {
    let medium = medium();
    medium.store(PAGE_BYTES, 9);
    medium.flush(PAGE_BYTES);
    medium.fence();
    medium.discard(PAGE_BYTES, 2 * PAGE_BYTES).unwrap();
    assert_eq!(medium.load(PAGE_BYTES), 0);
    assert_eq!(values(&medium, PAGE_BYTES), HashSet::from([0, 9]));
    medium.store(PAGE_BYTES + 64, 1);
    assert_eq!(values(&medium, PAGE_BYTES), HashSet::from([0]));
}

#[test]
fn a_discarded_page_that_was_never_loaded_reads_as_zero() {
    let medium = medium();
    medium.store(0, 9);
    let medium = SimMedium::from_image(&medium.now().seen());
    medium.discard(0, PAGE_BYTES).unwrap();
    assert_eq!(medium.load(0), 0);
}

#[test]
#[should_panic(expected = "no word at 32768 of a medium of 32768 bytes")]
fn a_word_beyond_the_end_is_named() {
    medium().load(SIZE);
}

#[test]
#[should_panic(expected = "the line at 64 was stored to past the medium")]
fn a_store_past_the_medium_is_found() {
    let medium = medium();
    medium.word(72).store(1, Ordering::Relaxed);
    medium.flush(64);
}

#[test]
fn stores_to_arrays_count_once_they_are_reported() {
    let medium = medium();
    medium.store(64, 5);
    let words = medium.array(64, 10).unwrap();
    let halves = medium.half_array(192, 3).unwrap();
    assert_eq!(words.as_ptr().addr() % 64 + halves.as_ptr().addr() % 64, 0);
    assert_eq!(words[0].load(Ordering::Relaxed), 5);
    words[9].store(7, Ordering::Relaxed);
    halves[1].store(3, Ordering::Relaxed);
    assert_eq!((medium.load(136), medium.load(192)), (7, 3 << 32));
    assert_eq!(values(&medium, 136), HashSet::from([0]));
    medium.stored(136);
    medium.stored(196);
    assert_eq!(values(&medium, 136), HashSet::from([0, 7]));
    assert_eq!(values(&medium, 192), HashSet::from([0, 3 << 32]));
    medium.flush(136);
    medium.flush(196);
    medium.fence();
    assert_eq!((values(&medium, 136), values(&medium, 192)), (HashSet::from([7]), HashSet::from([3 << 32])));
    assert!(std::ptr::eq(words, medium.array(64, 10).unwrap()));
    assert!(medium.array(SIZE - 64, 9).is_none());
    medium.word(72).store(1, Ordering::Relaxed);
    medium.stored(72);
    assert_eq!(SimMedium::from_image(&medium.now().seen()).load(72), 1);
}
