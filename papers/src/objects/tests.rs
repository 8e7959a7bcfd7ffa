use super::*;
use craton_base::PAGE_SIZE;
use craton_lab::rng::Rng;

fn model<S: Store>(make: impl Fn(Arena) -> S, sizes: impl Fn(&mut Rng) -> usize, keeps: usize) {
    for seed in 0..6 {
        let mut store = make(Arena::new(600));
        let mut rng = Rng::new(seed, 0);
        let mut out: Vec<(*mut u8, usize, u8)> = Vec::new();
        let (mut refused, mut requested) = (0, 0);
        let give = |store: &mut S, (at, bytes, stamp): (*mut u8, usize, u8)| {
            // SAFETY: ours until freed.
            unsafe {
                assert!(std::slice::from_raw_parts(at, bytes).iter().all(|b| *b == stamp), "{at:?} was written to");
                store.put(at, bytes);
            }
        };
        for step in 0..4000 {
            let grows = (step / 1000) % 2 == 0;
            if rng.below(3) < if grows { 2 } else { 1 } || out.is_empty() {
                let bytes = sizes(&mut rng);
                let Some(at) = store.get(bytes) else {
                    refused += 1;
                    continue;
                };
                assert!((at as usize).is_multiple_of(8));
                // SAFETY: ours.
                unsafe { at.write_bytes(step as u8, bytes) };
                out.push((at, bytes, step as u8));
                requested += bytes;
            } else {
                let gone = out.swap_remove(rng.below(out.len() as u32) as usize);
                requested -= gone.1;
                give(&mut store, gone);
            }
            assert!(store.consumed() >= requested);
            if step % 16 == 0 {
                store.check().unwrap();
                let mut places: Vec<_> = out.iter().map(|(at, bytes, _)| (*at as usize, *bytes)).collect();
                places.sort_unstable();
                assert!(places.windows(2).all(|w| w[0].0 + w[0].1 <= w[1].0), "two overlap");
            }
        }
        assert!(refused == 0 || requested > 300 * PAGE_SIZE, "refused with {requested} bytes out");
        out.drain(..).for_each(|gone| give(&mut store, gone));
        store.check().unwrap();
        assert!(store.consumed() <= keeps, "{} keeps {} bytes", std::any::type_name::<S>(), store.consumed());
    }
}

fn mixed(rng: &mut Rng) -> usize {
    let most = [16, 64, 300, 2000, 9000, 40_000][rng.below(6) as usize];
    1 + rng.below(most) as usize
}

#[test]
fn memory_of_a_power_of_two_never_overlaps_and_pages_of_small_memory_stay() {
    model(PowerOfTwo::new, mixed, 600 * (PAGE_SIZE + 4));
}

#[test]
fn lazy_buddies_never_overlap_and_their_lists_and_bits_agree() {
    model(LazyBuddy::new, mixed, 0);
}

#[test]
fn fast_fits_never_overlap_merge_at_once_and_give_all_pages_back() {
    model(FastFits::new, mixed, 0);
    model(FastFits::keeping, mixed, usize::MAX);
    model(FastFits::new, |rng| 16 * (1 + rng.below(4)) as usize, 0);
}

#[test]
fn an_arena_that_is_used_up_refuses_each_and_serves_again() {
    fn used_up<S: Store>(mut store: S, bytes: usize) {
        let all: Vec<_> = std::iter::from_fn(|| store.get(bytes)).collect();
        assert!(all.len() * bytes > 4 * PAGE_SIZE && store.get(bytes).is_none());
        store.check().unwrap();
        // SAFETY: it is live.
        unsafe { store.put(all[all.len() / 2], bytes) };
        // Blocks may begin in the rest before it.
        let again = store.get(bytes).expect("there is room for one");
        assert!(again <= all[all.len() / 2] && again > all[all.len() / 2 - 1] && store.get(bytes).is_none());
    }
    for bytes in [100, 5000, 20_000] {
        used_up(PowerOfTwo::new(Arena::new(16)), bytes);
        used_up(LazyBuddy::new(Arena::new(16)), bytes);
        used_up(FastFits::new(Arena::new(16)), bytes);
    }
}

#[test]
fn small_memory_of_4_4bsd_is_a_power_of_two_and_large_memory_goes_back() {
    let mut store = PowerOfTwo::new(Arena::new(16));
    let (a, b) = (store.get(33).unwrap(), store.get(60).unwrap());
    assert_eq!(b as usize - a as usize, 64);
    let large = store.get(3 * PAGE_SIZE - 5).unwrap();
    assert_eq!(store.consumed(), 4 * (PAGE_SIZE + 4));
    // SAFETY: live.
    unsafe {
        store.put(large, 3 * PAGE_SIZE - 5);
        store.put(a, 33);
        store.put(b, 60);
    }
    assert_eq!(store.consumed(), PAGE_SIZE + 4);
}

#[test]
fn a_lazy_buddy_merges_only_when_its_size_is_not_used_well() {
    let mut store = LazyBuddy::new(Arena::new(16));
    let all: Vec<_> = (0..8).map(|_| store.get(2048).unwrap()).collect();
    // SAFETY: live.
    unsafe {
        // Slack 8, 6, 4 and 2: lazily.
        all[..4].iter().for_each(|at| store.put(*at, 2048));
        assert_eq!(store.free_blocks(), (4, 0));
        // Slack 0: two become globally free each time.
        store.put(all[4], 2048);
        let (local, global) = store.free_blocks();
        assert!(local == 3 && global > 0);
        store.check().unwrap();
        all[5..].iter().for_each(|at| store.put(*at, 2048));
    }
    assert_eq!((store.free_blocks(), store.consumed()), ((0, 0), 0));
}

#[test]
fn the_leftmost_block_that_is_long_enough_serves() {
    let mut store = FastFits::new(Arena::new(16));
    let all: Vec<_> = (0..10).map(|_| store.get(160).unwrap()).collect();
    // SAFETY: live.
    unsafe {
        for i in [8, 6, 5, 2] {
            store.put(all[i], 160);
        }
    }
    store.check().unwrap();
    let served = [170, 160, 150, 160].map(|bytes| store.get(bytes).unwrap());
    assert_eq!(served, [all[5], all[2], all[8], all[9].wrapping_add(160)]);
}
