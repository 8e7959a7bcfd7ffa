use super::{Extent, PAPERS, plans};
use std::path::Path;

#[test]
fn unit_tests_are_one_build() {
    let plans = plans(Extent::Units, Path::new("target"));
    assert_eq!(plans.len(), 1);
    assert_eq!(plans[0].args, ["--workspace", "--lib", "--bins"]);
}

#[test]
fn nightly_runs_every_program_on_frames_and_every_experiment() {
    for (extent, times, filters) in [(Extent::All, 0, PAPERS.len()), (Extent::Nightly, 1, 0)] {
        let runs: Vec<_> = plans(extent, Path::new("target")).into_iter().flat_map(|plan| plan.runs).collect();
        let named = |name: &str| runs.iter().filter(|run| run.name == name).collect::<Vec<_>>();
        assert_eq!(named("on frames").len(), times);
        assert_eq!(named("papers")[0].filter.len(), filters);
    }
}

#[test]
fn loom_is_built_apart() {
    for plan in plans(Extent::All, Path::new("/there")) {
        let value = |key: &str| plan.env.iter().find(|(k, _)| k == key).map(|(_, value)| value.as_str());
        let is_loom = value("RUSTFLAGS").is_some_and(|flags| flags.contains("--cfg loom"));
        assert_eq!(is_loom, value("CARGO_TARGET_DIR") == Some("/there/loom"), "{plan:?}");
    }
}

#[test]
fn only_nightly_draws_its_seeds() {
    for (extent, is_fixed) in [(Extent::Units, true), (Extent::All, true), (Extent::Nightly, false)] {
        for run in plans(extent, Path::new("target")).into_iter().flat_map(|plan| plan.runs) {
            let seed = run.env.iter().find(|(key, _)| key == "PROPTEST_RNG_SEED");
            assert_eq!(seed.is_some(), is_fixed, "{run:?}");
        }
    }
}
