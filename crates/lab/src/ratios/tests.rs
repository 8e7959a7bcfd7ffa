use super::*;

fn run(allocator: &str, wall_s: f64) -> Run {
    Run { wall_s, ..Run::without(allocator, 0, Status::Ok) }
}

#[test]
fn the_best_peer_is_one_allocator_and_the_virtual_best_one_for_each_workload() {
    let first = [run(BASE, 4.0), run(OURS, 2.0), run("x", 1.0), run("y", 2.0)];
    let second = [run(BASE, 4.0), run(OURS, 2.0), run("x", 8.0), run("y", 2.0)];
    let ratios = Ratios::of(&[&first, &second], OURS).values();
    let of = |name: &str| (ratios[name] * 1000.0).round() / 1000.0;
    assert_eq!(of("time_vs_glibc"), 0.5);
    assert_eq!(of("time_vs_x"), 0.707);
    assert_eq!(of("time_vs_best_peer"), 1.0, "y, whose mean is 0.5");
    assert_eq!(of("time_vs_virtual_best"), 1.414);
    assert!(!ratios.contains_key("rss_vs_glibc"), "nothing was measured");
    assert!(!ratios.contains_key("time_vs_craton"));
}

#[test]
fn a_variant_of_ours_is_no_peer() {
    let runs = [run(BASE, 4.0), run(OURS, 2.0), run("craton+thp=always", 1.0)];
    let ratios = Ratios::of(&[&runs], OURS).values();
    assert_eq!((ratios["time_vs_craton+thp=always"], ratios["time_vs_best_peer"]), (2.0, 0.5));
    assert_eq!(ratios["time_vs_virtual_best"], 0.5);
}

#[test]
fn a_failed_allocator_has_no_ratio_and_glibc_may_be_the_best() {
    let runs = [run(BASE, 1.0), run(OURS, 2.0), Run::without("x", 0, Status::Signal(6)), run("y", 3.0)];
    let ratios = Ratios::of(&[&runs], OURS).values();
    assert!(!ratios.contains_key("time_vs_x"));
    assert_eq!(ratios["time_vs_best_peer"], 2.0);
    assert_eq!(ratios["time_vs_virtual_best"], 2.0);
    assert_eq!(Ratios::of(&[&runs[..1]], OURS), Ratios::default());
}
