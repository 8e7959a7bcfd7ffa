use super::*;
use std::process::Command;

fn sample(at_s: f64, rss_bytes: u64) -> Sample {
    Sample { at_s, rss_bytes, ..Sample::default() }
}

#[test]
fn children_are_found_whichever_thread_made_them() {
    let mut child = std::thread::scope(|scope| {
        let start = || Command::new("sleep").arg("1000").spawn().expect("sleep starts");
        scope.spawn(start).join().expect("the thread ends")
    });
    let found = children(std::process::id());
    let mut record = Record::default();
    record.sample(std::process::id(), 0.5);
    child.kill().expect("the child is there");
    child.wait().expect("the child ends");
    assert!(found.contains(&child.id()), "{} is not in {found:?}", child.id());
    let samples = record.into_samples();
    assert!(samples[0].rss_bytes > 0 && samples[0].at_s == 0.5, "{samples:?}");
}

#[test]
fn the_steady_state_is_the_median_of_the_second_half() {
    let samples = [sample(0.1, 900), sample(0.6, 10), sample(0.7, 30), sample(0.9, 20)];
    assert_eq!(steady_rss_bytes(&samples, 0.5, 1.0), Some(20));
    assert_eq!(peak(&samples).map(|s| s.rss_bytes), Some(900));
    assert_eq!(steady_rss_bytes(&samples[..1], 0.5, 1.0), None);
}

#[test]
fn many_samples_are_thinned_out_evenly() {
    let mut child = Command::new("sleep").arg("1000").spawn().expect("sleep starts");
    let mut record = Record::default();
    for i in 0..5 * MOST {
        record.sample(std::process::id(), i as f64);
    }
    child.kill().expect("the child is there");
    child.wait().expect("the child ends");
    let samples = record.into_samples();
    assert!((MOST / 2..MOST).contains(&samples.len()), "{}", samples.len());
    let step = samples[1].at_s - samples[0].at_s;
    assert!(samples.windows(2).all(|pair| pair[1].at_s - pair[0].at_s == step));
}
