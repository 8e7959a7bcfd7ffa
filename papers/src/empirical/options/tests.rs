use super::*;

fn split(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

fn of(line: &str) -> Result<Request, String> {
    parse(&split(line))
}

#[test]
fn only_options_of_its_own_make_the_driver_read_the_line() {
    for line in ["", "--threads 4 --seed 2", "--percent 5", "--expect 00"] {
        assert!(!wanted(&split(line)), "{line}");
    }
    for line in ["--heap 4", "--threads 4 --schedule=ramp", "--simulated", "--help"] {
        assert!(wanted(&split(line)), "{line}");
    }
}

#[test]
fn options_are_read() {
    let line = "--heap 128 --events=9 --schedule ramp --threads 4 --remote 50 --seed 3 --expect ab --heap=256";
    let Ok(Request::Real(config, expected)) = of(line) else { panic!("{line} is right") };
    assert_eq!((config.heap_bytes, config.events, config.schedule), (256 << 20, 9, Schedule::Ramp));
    assert_eq!((config.threads, config.remote_percent, config.seed), (4, 50, 3));
    assert_eq!((config.profile, expected), (Profile::built_in(), Some(0xab)));
    let Ok(Request::Simulated(config)) = of("--simulated --seconds 90 --samples 7 --release 2 --heap 16384") else {
        panic!()
    };
    assert_eq!((config.samples, config.release_bytes_per_s, config.heap_bytes), (7, 2 << 20, 16 << 30));
    assert_eq!(config.seconds, Some(90.0));
    assert_eq!(config.system, System { thp: ThpMode::Always, ..System::PLENTY });
    let line = "--simulated --thp never --hugepages 0 --failing 5 --fork-every 60 --page-heap frames --release auto \
                --more-runs 2";
    let Ok(Request::Simulated(config)) = of(line) else { panic!("{line} is right") };
    let poor = System { thp: ThpMode::Never, frames_percent: Some(0), failing_percent: 5, fork_every_s: 60 };
    assert_eq!((config.system, config.heap, config.release_bytes_per_s), (poor, HeapName::Frames, AUTO_RATE));
    assert_eq!(config.more_runs, 2);
    assert!(matches!(of("--heap 1 -h"), Ok(Request::Help)));
    // Not refused by the default share of remote frees.
    assert!(matches!(of("--heap 1 --threads 1"), Ok(Request::Real(..))));
    assert!(matches!(of("--remote 0 --threads 1"), Ok(Request::Real(..))));
}

#[test]
fn wrong_usage_names_option_and_value() {
    for (line, parts) in [
        ("--heap 0", ["--heap", "\"0\""]),
        ("--heap 16777217", ["--heap", "16777216"]),
        ("--heap", ["--heap", "needs a value"]),
        ("--events 0", ["--events", "\"0\""]),
        ("--events many", ["--events", "\"many\""]),
        ("--schedule weekly", ["\"weekly\"", "diurnal"]),
        ("--remote 101", ["--remote", "\"101\""]),
        ("--remote 5 --threads 1", ["--remote 5", "--threads 2"]),
        ("--heap 1 --threads 0", ["--threads", "\"0\""]),
        ("--heap 1 --seed -1", ["--seed", "\"-1\""]),
        ("--heap 1 --percent 5", ["--percent", "--events"]),
        ("--heap 1 --samples 5", ["--samples", "only with --simulated"]),
        ("--release=5", ["--release", "only with --simulated"]),
        ("--simulated --remote 5", ["--remote", "only without --simulated"]),
        ("--simulated --expect 00", ["--expect", "only without --simulated"]),
        ("--simulated --samples 0", ["--samples", "\"0\""]),
        ("--simulated --seconds 0", ["--seconds", "\"0\""]),
        ("--simulated --release half", ["--release", "\"half\""]),
        ("--simulated --thp sometimes", ["--thp \"sometimes\"", "always, madvise, never"]),
        ("--simulated --page-heap mine", ["--page-heap \"mine\"", "temeraire, frames"]),
        ("--simulated --failing 101", ["--failing", "\"101\""]),
        ("--fork-every 5", ["--fork-every", "only with --simulated"]),
        ("--simulated=yes", ["--simulated=yes", "no value"]),
        ("--heap 1 fast", ["\"fast\"", "--help"]),
        ("--profile /no/such.csv", ["/no/such.csv", "cannot read"]),
    ] {
        let why = of(line).expect_err(line);
        assert!(parts.iter().all(|part| why.contains(part)), "{line}: {why}");
    }
}

#[test]
fn the_help_names_every_option_and_schedule() {
    let schedules = Schedule::ALL.map(|(name, _)| name);
    for name in OWN.iter().chain(&REAL_ONLY).chain(&SIMULATED_ONLY).chain(&schedules) {
        assert!(USAGE.contains(name), "{name}");
    }
}
