use super::*;

fn tried(options: &str, peak: f64, steady: Option<f64>, cpu: f64) -> Tried {
    Tried { options: options.to_owned(), peak, steady, cpu }
}

#[test]
fn the_setting_with_least_memory_is_proved_if_it_is_worth_it() {
    let all = [
        tried("", 100.0, Some(90.0), 1.0),
        tried("caches=cpu", 80.0, Some(80.0), 1.2),
        tried("thread_cache=256K", 85.0, Some(82.0), 1.04),
    ];
    assert_eq!(choose(&all, &all[0], "", Goal::Rss), "caches=cpu");
    assert_eq!(choose(&all, &all[0], "", Goal::Balanced), "thread_cache=256K");
    let alike = [all[0].clone(), tried("caches=cpu", 98.0, Some(90.0), 1.0)];
    assert_eq!(choose(&alike, &alike[0], "", Goal::Rss), "");
    assert_eq!(choose(&alike, &alike[0], "thp=never", Goal::Rss), "thp=never");
}

#[test]
fn a_run_too_short_for_a_steady_figure_counts_by_its_peak() {
    let all = [tried("", 100.0, None, 1.0), tried("caches=cpu", 90.0, Some(50.0), 1.0)];
    assert!((all[1].memory(&all[0]) - 0.9).abs() < 1e-9);
}
