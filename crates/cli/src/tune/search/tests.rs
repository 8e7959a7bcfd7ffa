use super::*;

fn tried(policy: Policy, memory: u64, coverage: f64, calls: u64) -> Tried {
    let mut outcome = Outcome {
        peak_backed_bytes: memory,
        steady_backed_bytes: memory,
        hugepage_coverage: Some(coverage),
        backed_over_time: vec![memory, memory],
        ..Outcome::default()
    };
    outcome.calls.back_calls = calls;
    Tried { policy, outcome }
}

fn rate(mib: u64) -> Policy {
    Policy { release_rate: mib << 20, ..Policy::default() }
}

#[test]
fn each_goal_finds_its_own_setting() {
    let never = Policy { backing: HugeBacking::NEVER, ..Policy::default() };
    let all = [
        tried(Policy::default(), 100, 0.8, 100),
        tried(never, 60, 0.0, 100),
        tried(rate(0), 130, 0.95, 50),
        tried(rate(16), 90, 0.795, 110),
        tried(rate(256), 80, 0.81, 200),
    ];
    assert_eq!(Goal::Rss.best(&all).options(), "thp=never");
    assert_eq!(Goal::Coverage.best(&all).options(), "release_rate=0");
    assert_eq!(Goal::Balanced.best(&all).options(), "release_rate=16M");
    assert_eq!(all[3].moments_below(&all[0]), 2);
}

#[test]
fn the_default_wins_among_equals() {
    let all = [tried(Policy::default(), 100, 0.8, 100), tried(rate(16), 100, 0.8, 100)];
    for goal in ["rss", "coverage", "balanced"].map(Goal::parse) {
        assert!(goal.best(&all).is_default(), "{}", goal.name());
    }
}

#[test]
fn settings_differ_and_have_the_librarys_names() {
    let all = policies();
    let options: Vec<String> =
        all.iter().map(|policy| tried(*policy, 1, 1.0, 1).options()).filter(|options| !options.is_empty()).collect();
    assert_eq!((all[0], all.len()), (Policy::default(), options.len() + 1));
    for (i, option) in options.iter().enumerate() {
        assert!(!options[..i].contains(option), "{option}");
        for setting in option.split(',') {
            crate::options::Setting::parse(setting.into()).unwrap();
        }
    }
}
