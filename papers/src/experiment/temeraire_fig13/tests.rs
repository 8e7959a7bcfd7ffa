use crate::empirical::profile::Profile;
use crate::empirical::schedule::Schedule;
use crate::empirical::sim;

#[test]
fn release_costs_coverage_and_saves_memory_but_most_stays_on_hugepages() {
    let summary = |release_bytes_per_s| {
        let config = sim::Config {
            schedule: Schedule::Ramp,
            seconds: Some(super::SECONDS),
            release_bytes_per_s,
            ..sim::Config::new(Profile::built_in(), 64 << 20, 200_000)
        };
        sim::summary(&sim::simulate(&config).expect("room"))
    };
    let (kept, released) = (summary(0), summary(1 << 20));
    assert!(released.released_bytes > kept.released_bytes);
    assert!(released.steady_coverage <= kept.steady_coverage, "{released}, {kept}");
    assert!(released.steady_per_span <= kept.steady_per_span, "{released}, {kept}");
    assert!(kept.steady_coverage > 0.8, "{kept}");
}
