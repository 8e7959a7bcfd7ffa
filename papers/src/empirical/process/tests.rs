use super::*;
use std::collections::BTreeMap;

const SMALL: &str = "16, 1000, 4000\n48, 2000, 1000\n100, 50, 3000\n1000, 100, 100\n4000, 30, 5\n";

fn small() -> Profile {
    Profile::parse(SMALL, "small").expect("a good profile")
}

fn config(profile: &Profile) -> Config<'_> {
    Config {
        profile,
        heap_bytes: 1 << 20,
        schedule: Schedule::Steady,
        events: 200_000,
        remote_percent: 0,
        seed: 1,
        number: 0,
    }
}

fn all(config: &Config) -> Vec<Event> {
    let mut process = Process::new(config).expect("the heap is large enough");
    std::iter::from_fn(|| process.next_event()).collect()
}

#[test]
fn the_same_seed_gives_the_same_events_and_another_gives_others() {
    let profile = small();
    let first = all(&Config { events: 5000, ..config(&profile) });
    assert_eq!(first, all(&Config { events: 5000, ..config(&profile) }));
    assert_ne!(first, all(&Config { events: 5000, seed: 2, ..config(&profile) }));
    assert_ne!(first, all(&Config { events: 5000, number: 1, ..config(&profile) }));
}

#[test]
fn batches_are_the_same_events() {
    let profile = small();
    let mut process = Process::new(&config(&profile)).expect("large enough");
    let mut events = [Event::Free { slot: 0, size: 0, remote: false }; 7];
    let mut batched = Vec::new();
    loop {
        let made = process.fill(&mut events);
        if made == 0 {
            break;
        }
        batched.extend_from_slice(&events[..made]);
    }
    assert_eq!(batched, all(&config(&profile)));
}

#[test]
fn slots_are_born_empty_and_die_with_their_size() {
    let profile = small();
    for schedule in Schedule::ALL.map(|(_, schedule)| schedule) {
        let config = Config { schedule, ..config(&profile) };
        let mut process = Process::new(&config).expect("large enough");
        let mut live = BTreeMap::new();
        let mut highest = 0;
        while let Some(event) = process.next_event() {
            match event {
                Event::Alloc { slot, size } => {
                    assert!(slot <= highest, "slots are used for the first time in ascending order");
                    highest = highest.max(slot + 1);
                    assert_eq!(live.insert(slot, size), None);
                }
                Event::Free { slot, size, remote } => assert_eq!((live.remove(&slot), remote), (Some(size), false)),
            }
        }
        assert_eq!(live, process.live().collect());
        assert_eq!((live.values().sum::<u64>(), live.len() as u64), (process.live_bytes, process.live_objects));
        assert!(highest as usize <= process.slots_expected());
    }
}

#[test]
fn little_s_law_holds_after_many_events() {
    let profile = small();
    // Chance seldom moves it out of the band.
    let config = Config { heap_bytes: 8 << 20, events: 2_000_000, ..config(&profile) };
    let mut process = Process::new(&config).expect("large enough");
    let bytes: f64 = profile.rows().iter().map(|row| row.live * row.size as f64).sum();
    let scale = config.heap_bytes as f64 / bytes;
    let mut sums = vec![0.0; profile.rows().len()];
    let mut births: BTreeMap<u64, f64> = BTreeMap::new();
    let (mut looks, mut number, mut last_s) = (0.0, 0u64, 0.0);
    while let Some(event) = process.next_event() {
        if process.now_s == last_s {
            continue;
        }
        last_s = process.now_s;
        number += 1;
        if let Event::Alloc { size, .. } = event {
            *births.entry(size).or_default() += 1.0;
        }
        if number.is_multiple_of(1000) {
            looks += 1.0;
            process.live_by_size().zip(&mut sums).for_each(|((_, live), sum)| *sum += f64::from(live));
        }
    }
    for (row, sum) in profile.rows().iter().zip(&sums) {
        let (mean, expected) = (sum / looks, row.live * scale);
        assert!((mean - expected).abs() < 0.05 * expected, "size {}: {mean} live of {expected}", row.size);
        let (born, expected) = (births[&row.size], row.rate * process.duration_s);
        assert!((born - expected).abs() < 5.0 * expected.sqrt(), "size {}: {born} births of {expected}", row.size);
    }
}

#[test]
fn the_number_of_events_is_about_what_was_asked_for() {
    let profile = small();
    for (name, schedule) in Schedule::ALL {
        let mut process = Process::new(&Config { schedule, ..config(&profile) }).expect("large enough");
        let (mut natural, mut last_s) = (0u64, 0.0);
        while process.next_event().is_some() {
            natural += u64::from(process.now_s > last_s);
            last_s = process.now_s;
        }
        assert!((180_000..=220_000).contains(&natural), "{name}: {natural} events in simulated time");
        assert!((process.now_s / process.duration_s - 1.0).abs() < 0.01, "{name}: ended at {}", process.now_s);
    }
}

#[test]
fn every_schedule_is_followed_within_a_tenth() {
    let (small, built_in) = (small(), Profile::built_in());
    for (profile, heap_bytes) in [(&small, 4u64 << 20), (&built_in, 64 << 20)] {
        for (name, schedule) in Schedule::ALL {
            let mut process = Process::new(&Config { schedule, heap_bytes, ..config(profile) }).expect("large enough");
            let (mut looks, mut last_s) = (0u64, 0.0);
            while process.next_event().is_some() {
                // While the heap moves, time stands still.
                let over = process.now_s / process.duration_s;
                let (target, earlier) = (schedule.at(over), schedule.at(over - 1e-3));
                if process.now_s == last_s || target != earlier && (target - earlier).abs() > 0.01 {
                    continue;
                }
                (looks, last_s) = (looks + 1, process.now_s);
                let off = process.live_bytes as f64 / heap_bytes as f64 - target;
                // One object may be a 32nd.
                assert!(off.abs() <= 0.07 * target + 0.032, "{name}: {off} off {target} at {over}");
            }
            assert!(looks > 150_000, "{name}: {looks}");
        }
    }
}

#[test]
fn growing_and_shrinking_keep_the_mixture() {
    let profile = small();
    let config = Config { schedule: Schedule::Ramp, events: 1000, heap_bytes: 4 << 20, ..config(&profile) };
    let mut process = Process::new(&config).expect("large enough");
    while process.next_event().is_some() {}
    let all: f64 = profile.rows().iter().map(|row| row.live).sum();
    for (row, (size, live)) in profile.rows().iter().zip(process.live_by_size()) {
        let (part, expected) = (f64::from(live) / process.live_objects as f64, row.live / all);
        let spread = (expected / process.live_objects as f64).sqrt();
        assert!((part - expected).abs() < 5.0 * spread, "size {size}: {part} of the objects, not {expected}");
    }
}

#[test]
fn the_remote_share_is_near_the_one_asked_for() {
    let profile = small();
    for percent in [0, 10, 50, 100] {
        let events = all(&Config { remote_percent: percent, ..config(&profile) });
        let deaths = events.iter().filter(|event| matches!(event, Event::Free { .. })).count() as f64;
        let remote = events.iter().filter(|event| matches!(event, Event::Free { remote: true, .. })).count() as f64;
        assert!((100.0 * remote / deaths - f64::from(percent)).abs() < 1.0, "{remote} of {deaths} at {percent} %");
    }
}

#[test]
fn sizes_too_large_for_the_heap_are_left_out_and_told() {
    let profile = Profile::parse("100, 10, 10\n1000, 1, 3\n", "p").expect("good");
    let process = Process::new(&Config { heap_bytes: 20_000, ..config(&profile) }).expect("100 bytes fit");
    assert_eq!(process.left_out, LeftOut { sizes: 1, bytes_part: 0.75 });
    assert!(process.left_out.to_string().contains("left out: 1, with 75.0%"));
    assert!(process.live_by_size().all(|(size, _)| size == 100));
    let why = Process::new(&Config { heap_bytes: 1000, ..config(&profile) }).err().expect("nothing fits");
    assert!(why.contains("1000 bytes") && why.contains("--heap"), "{why}");
    let why = Process::new(&Config { heap_bytes: 1 << 60, ..config(&profile) }).err().expect("too many objects");
    assert!(why.contains("2^31"), "{why}");
}

#[test]
fn objects_without_births_live_for_ever() {
    let profile = Profile::parse("16, 100, 100\n32, 0, 1000\n", "p").expect("good");
    let events = all(&Config { heap_bytes: 64 << 10, events: 50_000, ..config(&profile) });
    let restored = events.iter().filter(|event| matches!(event, Event::Free { size: 32, .. })).count();
    let born = events.iter().filter(|event| matches!(event, Event::Alloc { size: 32, .. })).count();
    assert!(born > 1000 && restored < born / 4, "{restored} of {born} died");
}
