use super::{Extent, ON_FRAMES, plans};
use std::path::Path;

#[test]
fn unit_tests_are_one_build() {
    let plans = plans(Extent::Units, Path::new("target"));
    assert_eq!(plans.len(), 1);
    assert_eq!(plans[0].args, ["--workspace", "--lib", "--bins"]);
}

#[test]
fn nightly_runs_every_program_on_frames() {
    for (extent, filters) in [(Extent::All, ON_FRAMES.len()), (Extent::Nightly, 0)] {
        let plans = plans(extent, Path::new("target"));
        let on_frames = plans.iter().flat_map(|plan| &plan.runs).find(|run| run.name == "on frames");
        assert_eq!(on_frames.map(|run| run.filter.len()), Some(filters));
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
