use super::*;
use craton_base::Pages;
use craton_pages::Breaking;
use craton_sim::ThpMode;

const ALWAYS: System = System { thp: ThpMode::Always, ..System::PLENTY };

fn config() -> Config {
    Config {
        profile: Profile::built_in(),
        heap_bytes: 64 << 20,
        schedule: Schedule::Steady,
        events: 200_000,
        seed: 1,
        seconds: None,
        samples: 20,
        release_bytes_per_s: 0,
        system: ALWAYS,
        heap: HeapName::Temeraire,
        more_runs: 0,
    }
}

fn simulated(config: &Config) -> Vec<Sample> {
    simulate(config).expect("the region is large enough")
}

#[test]
fn sums_of_every_sample_agree() {
    for (name, schedule) in Schedule::ALL {
        for thp in [ThpMode::Always, ThpMode::Never] {
            let samples = simulated(&Config { schedule, system: System { thp, ..System::PLENTY }, ..config() });
            assert_eq!(samples.len(), 21, "{name}");
            for s in &samples {
                assert!(s.live_bytes <= s.span_bytes, "{name}: {s:?}");
                assert!(s.huge_bytes <= s.backed_bytes, "{name}: {s:?}");
                assert!(s.live_bytes <= s.backed_bytes, "{name}: {s:?}");
                if thp == ThpMode::Never {
                    // Unreached pages of a slab have no memory.
                    assert!(s.huge_bytes == 0 && s.backed_bytes <= s.span_bytes + s.free_backed_bytes, "{name}: {s:?}");
                }
                let off = s.live_bytes.abs_diff(s.target_bytes);
                assert!(off * 10 <= s.target_bytes + (64 << 20) / 3, "{name}: {s:?}");
            }
            assert!(samples.windows(2).all(|pair| pair[0].time_s < pair[1].time_s), "{name}");
            assert!(samples.windows(2).all(|pair| pair[0].released_bytes <= pair[1].released_bytes), "{name}");
        }
    }
}

#[test]
fn a_simulation_is_repeated() {
    let spikes = Config { schedule: Schedule::Spikes, ..config() };
    assert_eq!(simulated(&spikes), simulated(&spikes));
    assert_ne!(simulated(&spikes), simulated(&Config { seed: 2, ..spikes }));
}

#[test]
fn a_run_takes_the_seconds_asked_for_with_the_same_objects() {
    let (free, hour) = (simulated(&config()), simulated(&Config { seconds: Some(3600.0), ..config() }));
    assert!((hour[20].time_s - 3600.0).abs() < 1.0 && (hour[10].time_s - 1800.0).abs() < 1.0);
    let live = |samples: &[Sample]| samples[20].live_bytes;
    assert_eq!(live(&free), live(&hour));
    // Demand windows depend on the clock.
    let given_back = |seconds| {
        let spikes = Config { schedule: Schedule::Spikes, release_bytes_per_s: 1 << 20, ..config() };
        summary(&simulated(&Config { seconds, ..spikes })).released_bytes
    };
    assert!(given_back(Some(3600.0)) > given_back(Some(1.0)));
}

/// On hugepages.
fn on(system: System) -> Summary {
    let seconds = Some(600.0);
    let madvise = System { thp: ThpMode::Madvise, ..system };
    summary(&simulated(&Config { system: madvise, seconds, samples: 600, ..config() }))
}

#[test]
fn coverage_is_what_the_system_gives() {
    let plenty = on(System::PLENTY);
    assert!(plenty.worst_coverage > 0.7, "{plenty}");
    let half = on(System { frames_percent: Some(40), ..System::PLENTY });
    assert!((0.2..0.45).contains(&half.worst_coverage), "{half}");
    let none = on(System { failing_percent: 100, ..System::PLENTY });
    assert_eq!((none.worst_coverage, none.steady_coverage), (0.0, 0.0));
    // Collapses make up for failures.
    let failing = on(System { failing_percent: 50, ..System::PLENTY });
    assert!((0.5..=plenty.steady_coverage).contains(&failing.steady_coverage), "{failing}");
}

#[test]
fn forks_split_hugepages_which_come_back() {
    let (plenty, forks) = (on(System::PLENTY), on(System { fork_every_s: 120, ..System::PLENTY }));
    assert!(forks.worst_coverage < plenty.worst_coverage - 0.1, "{forks}, {plenty}");
    assert!(forks.steady_coverage > forks.worst_coverage + 0.1, "{forks}");
}

#[test]
fn parts_of_what_lies_beyond_spans_add_up() {
    for heap in [HeapName::Temeraire, HeapName::Frames] {
        let samples = simulated(&Config { heap, seconds: Some(60.0), ..config() });
        for s in &samples {
            let parts = s.dense_free_bytes + s.sparse_free_bytes + s.cached_bytes + s.region_free_bytes;
            assert_eq!(parts, s.free_backed_bytes, "{s:?}");
            // It counts its front's untouched pages as backed.
            assert!(s.beyond_bytes <= parts && parts <= s.beyond_bytes + (16 << 20), "{s:?}");
            assert!(heap == HeapName::Temeraire || s.region_free_bytes == 0);
        }
    }
}

#[test]
fn a_run_goes_on_until_it_is_flat() {
    let of = |beyond_bytes| Sample { span_bytes: 1000, beyond_bytes, ..Sample::default() };
    let rising: Vec<Sample> = (0..80).map(of).collect();
    assert!(!is_flat(&rising) && is_flat(&rising[..20]));
    assert!(is_flat(&[of(7); 80]) && is_flat(&[]));
    let long = Config { more_runs: 3, samples: 400, seconds: Some(60.0), ..config() };
    let (samples, one) = (simulated(&long), simulated(&Config { more_runs: 0, ..long }));
    assert_eq!(samples[..400], one[..400]);
    assert!(is_flat(&samples) || samples.len() == 1601, "{}", samples.len());
    assert_eq!(samples.len() % 400, 1);
}

#[test]
fn the_heap_under_the_process_stays_whole() {
    let mut world = World::new(&Config { schedule: Schedule::Diurnal, ..config() }).expect("large enough");
    let mut events = 0u64;
    while let Some(event) = world.process.next_event() {
        world.tick(world.now_s());
        world.play(event).expect("room");
        events += 1;
        if events.is_multiple_of(50_000) {
            world.heap.release_all(Breaking::Always);
            world.heap.check().unwrap_or_else(|broken| panic!("{broken:?}"));
            world.floor.check().unwrap_or_else(|broken| panic!("{broken:?}"));
        }
    }
    let left: Vec<(u32, u64)> = world.process.live().collect();
    for (slot, size) in left {
        world.slabs.free(world.places[slot as usize], size, &mut world.heap);
    }
    assert_eq!(world.heap.in_use(), Pages(0));
}

#[test]
fn what_is_released_each_second_lowers_the_backed_bytes() {
    let kept = Config { schedule: Schedule::Drop, events: 1_000_000, seconds: Some(1200.0), ..config() };
    let (kept, released) =
        (summary(&simulated(&kept)), summary(&simulated(&Config { release_bytes_per_s: 32 << 20, ..kept })));
    assert!(released.released_bytes > kept.released_bytes, "{released}, {kept}");
    assert!(released.steady_overhead < 0.95 * kept.steady_overhead, "{released}, {kept}");
    assert!(released.steady_coverage < kept.steady_coverage, "{released}, {kept}");
}

#[test]
fn a_heap_of_many_gib_needs_no_such_memory() {
    // Large objects make the test quick.
    let profile = Profile::parse("300000, 100, 100\n5000000, 10, 100\n", "p").expect("good");
    let samples = simulated(&Config { profile, heap_bytes: 256 << 30, events: 10_000, ..config() });
    assert!(samples.iter().all(|s| s.live_bytes > 200 << 30 && s.backed_bytes > s.live_bytes));
}

#[test]
fn the_summary_takes_peaks_of_all_and_means_of_the_second_half() {
    let sample = |live_bytes, backed_bytes, huge_bytes| Sample {
        live_bytes,
        span_bytes: 2 * live_bytes,
        backed_bytes,
        huge_bytes,
        beyond_bytes: live_bytes,
        ..Sample::default()
    };
    let got = summary(&[sample(100, 300, 0), sample(200, 250, 0), sample(100, 200, 50), sample(100, 200, 150)]);
    let expected = Summary {
        peak_live_bytes: 200,
        peak_backed_bytes: 300,
        peak_overhead: 1.5,
        steady_overhead: 2.0,
        steady_per_span: 1.0,
        steady_coverage: 0.5,
        worst_overhead: 0.5,
        worst_coverage: 0.75,
        released_bytes: 0,
    };
    assert_eq!(got, expected);
    assert_eq!(summary(&[]), Summary::default());
}

#[test]
fn csv_has_a_value_for_each_name() {
    let text = csv(&[Sample { time_s: 0.5, released_bytes: 7, ..Sample::default() }]);
    let columns = |line: &str| line.split(',').count();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines.len(), columns(lines[0])), (2, columns(lines[1])));
    assert!(lines[1].starts_with("0.500000,") && lines[1].contains(",7,"));
}
