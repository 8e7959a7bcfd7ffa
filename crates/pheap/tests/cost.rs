use craton_pheap::{Config, Heap, Options, Slot};
use craton_sim::{Rng, SimMedium};

/// Flushes and fences an operation, and flushes at distance below 4.
fn cost(half: u32, stripes: u32, eager: bool, sizes: &[u64], live: u64) -> (f64, f64, u64) {
    let medium = SimMedium::new(1 << 16, 64 << 20);
    let config = Config { half, lanes: 4, stripes, ..Config::default() };
    let options = Options { eager, ..Options::default() };
    let heap = Heap::create(medium.clone(), config, options).unwrap();
    let root = heap.add_root(b"slots", 0).unwrap();
    // A line apart, so that no reflush is the application's.
    let table = heap.alloc_with(root, live * 64, |heap, at| (0..live * 8).for_each(|i| heap.write(at, 8 * i, 0)));
    let slot = |i: u64| Slot(table.unwrap().0 + 64 * i);
    let mut rng = Rng::new(1);
    let mut run = |operations: u64| {
        for i in 0..operations / 2 {
            let slot = slot(if sizes.len() == 1 { i % live } else { rng.below(live) });
            if heap.read(slot.0) != 0 {
                heap.free_from(slot).unwrap();
            } else {
                heap.alloc_to(slot, *rng.pick(sizes)).unwrap();
            }
        }
    };
    run(8 * live);
    let operations = 8 * live;
    medium.reset_counters(0);
    run(2 * operations);
    let counters = medium.counters();
    let each = |n: u64| n as f64 / operations as f64;
    let near = counters.reflushes.iter().sum();
    (each(counters.flushes + counters.line_stores), each(counters.fences), near)
}

#[test]
fn an_operation_costs_one_fence() {
    for (name, sizes) in [("threadtest", &[64][..]), ("shbench", &[64, 64, 96, 128, 200, 400, 1000][..])] {
        let (flushes, fences, near) = cost(512, 6, false, sizes, 2000);
        eprintln!("{name}: {flushes:.3} flushes, {fences:.3} fences an operation, {near} near reflushes");
        assert!(flushes <= 2.3 && fences <= 1.15, "{name}: {flushes} flushes, {fences} fences");
    }
}

#[test]
fn interleaving_saves_near_reflushes_where_bitmaps_are_written_back_at_once() {
    let (flushes, fences, near) = cost(256, 1, true, &[128], 2000);
    assert!((2.9..3.3).contains(&flushes) && (1.9..2.3).contains(&fences), "{flushes} flushes, {fences} fences");
    let (_, _, interleaved) = cost(256, 6, true, &[128], 2000);
    assert!(near > 10_000 && interleaved < near / 20, "{near} near reflushes, {interleaved} with 6 stripes");
}
