use super::*;

#[test]
fn samples_come_as_often_as_asked_for_on_average() {
    for every in [1, 2, 10, 1000, 20_000] {
        let (n, mut sum, mut x) = (20_000u64, 0u64, 88_172_645_463_325_252u64);
        for _ in 0..n {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            sum += geometric(x, every) as u64;
        }
        let mean = sum as f64 / n as f64;
        // The standard error is about `every` / 141.
        assert!((mean / every as f64 - 1.0).abs() < 0.04, "{mean} for {every}");
    }
}

#[test]
fn the_logarithm_is_one() {
    for (x, ln) in [(1.0, 0.0), (1.5, 0.405_465_108_1), (2.0, core::f64::consts::LN_2)] {
        assert!((ln_near_one(x) - ln).abs() < 1e-8, "{x}");
    }
}

#[test]
fn while_samples_are_off_no_object_is_one() {
    let sample = Sample::new();
    sample.set(0);
    assert!(!sample.is_due(0) && !sample.is_due(5) && !sample.begin(5) && !sample.is_busy());
    assert_eq!((sample.bound(5, 100), sample.every(), sample.taken()), (100, 0, 0));
    assert!(!sample.reused(5, u32::MAX));
    assert!(Sample::allows(0) && Sample::allows(MOST) && !Sample::allows(MOST + 1));
}

#[test]
fn about_one_object_in_n_is_a_sample_however_they_are_asked_for() {
    let sample = Sample::new();
    sample.set(50);
    let (mut objects, mut samples) = (0u64, 0u64);
    for turn in 0..40_000u32 {
        let class = (turn % 4) as usize;
        if sample.is_due(class) {
            assert!(sample.begin(class));
            sample.count(16, 0);
            samples += 1;
            objects += 1;
        } else if class > 0 {
            let n = sample.bound(class, 16);
            assert!((1..=16).contains(&n));
            objects += u64::from(n);
        } else {
            objects += 1;
        }
    }
    assert_eq!(sample.taken(), samples);
    let rate = objects as f64 / samples as f64;
    assert!((35.0..70.0).contains(&rate), "one in {rate}");
    sample.set(0);
    assert!(!sample.is_due(1) && sample.every() == 0);
}

fn of_size(size: usize) -> usize {
    craton_heap::size_class::class_of(size)
}

#[test]
fn by_default_samples_come_after_a_time_and_a_number_of_small_objects() {
    let sample = Sample::new();
    assert_eq!((sample.every(), sample.is_asked(), sample.is_busy()), (AUTO, false, false));
    let class = of_size(100);
    assert!(!sample.is_time(1_000) && !sample.is_time(1_000 + PACE_NS - 1), "none at the start");
    assert!(sample.is_time(1_000 + PACE_NS) && !sample.is_time(1_001 + PACE_NS), "one, and then none for a while");
    sample.cost_ns.store(PACE_NS, Relaxed);
    assert!(!sample.is_time(2_000 + 3 * PACE_NS), "an expensive one is followed by a longer while");
    sample.count(PACED_BYTES, processor_ns());
    assert!(sample.cost_ns.load(Relaxed) >= (PACED_BYTES / process::page_size()) as u64 * TOUCH_NS, "and a large one");
    sample.cost_ns.store(0, Relaxed);
    sample.last_at_ns.store(1_000, Relaxed);
    assert!(!sample.comes_now(1_000 + PACE_NS - 1), "by the clock, before the processor time is asked for");
    sample.last_ns.store(u64::MAX - PACE_NS, Relaxed);
    sample.last_at_ns.store(0, Relaxed);
    let mut objects = 0u64;
    while !sample.is_due(class) {
        objects += u64::from(sample.bound(class, 32));
        assert_eq!(sample.bound(of_size(PACED_BYTES + 1), 7), 7, "no sample is so large");
        assert!(!sample.is_due(0) && objects < 40 * AUTO);
    }
    assert!(sample.is_busy() && sample.begin(class) && !sample.is_due(class) && !sample.is_busy());
}

#[test]
fn what_a_cache_served_counts_as_what_came_from_slabs() {
    let (sample, class) = (Sample::new(), of_size(100));
    sample.last_ns.store(u64::MAX - PACE_NS, Relaxed);
    let mut turns = 0u64;
    while !sample.reused(class, 1000) {
        turns += 1;
        assert!(turns < 40 * AUTO / 1000);
    }
    assert!(sample.is_due(class) && sample.is_busy());
    assert!(!sample.reused(class, 1), "the next is far away");
}

#[test]
fn with_n_of_one_every_object_is_a_sample() {
    let sample = Sample::new();
    sample.set(1);
    assert!(sample.is_due(0) && sample.is_due(3));
    assert_eq!(sample.bound(3, 16), 1, "one goes out, and then the sample");
    assert!(sample.is_due(3));
}
