use super::*;

#[test]
fn mean_and_peak_are_those_of_the_course() {
    for (name, schedule) in Schedule::ALL {
        let courses: Vec<f64> = (0..100_000).map(|i| schedule.at((f64::from(i) + 0.5) / 1e5)).collect();
        let mean = courses.iter().sum::<f64>() / 1e5;
        let peak = courses.iter().copied().fold(0.0, f64::max);
        assert!((mean - schedule.mean()).abs() < 1e-3, "{name}: mean {mean}");
        assert!((peak - schedule.peak()).abs() < 1e-3, "{name}: peak {peak}");
    }
}

#[test]
fn courses_have_the_ends_that_their_names_promise() {
    assert_eq!([Schedule::Diurnal.at(0.0), Schedule::Diurnal.at(0.25)], [0.5, 1.0]);
    assert_eq!([Schedule::Spikes.at(0.0), Schedule::Spikes.at(0.125)], [1.0, 2.0]);
    assert_eq!([Schedule::Ramp.at(0.0), Schedule::Ramp.at(0.5)], [0.1, 1.0]);
    assert!((Schedule::Ramp.at(1.0) - 0.3).abs() < 1e-12);
    assert_eq!([Schedule::Drop.at(0.4), Schedule::Drop.at(0.6)], [1.0, 0.5]);
}
