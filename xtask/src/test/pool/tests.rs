use super::{Event, Pool};
use crate::test::job::{Finished, Job, Kind};
use std::collections::HashMap;
use std::sync::mpsc::channel;
use std::time::Duration;

fn prints(name: &str, text: &str) -> Job {
    Job {
        name: name.into(),
        program: "sh".into(),
        args: vec!["-c".into(), format!("echo {text}; echo 'test result: ok. 1 passed; 0 failed; 0 ignored'")],
        env: vec![],
        dir: "/".into(),
        kind: Kind::Computes,
        threads: 1,
        needs: vec![],
    }
}

fn run(last: &[(&str, f64)], events: Vec<Event>) -> (Vec<Finished>, Vec<String>) {
    let (send, receive) = channel();
    for event in events {
        send.send(event).expect("the receiver is there");
    }
    let last = last.iter().map(|(name, seconds)| (String::from(*name), *seconds)).collect::<HashMap<_, _>>();
    let mut ended = Vec::new();
    let broken = Pool::new(last, Duration::from_secs(60)).run((send, receive), 1, |finished| ended.push(finished));
    (ended, broken)
}

#[test]
fn the_slowest_start_first_and_the_unknown_last() {
    let mut pool = Pool::new(HashMap::from([("slow".into(), 9.0), ("quick".into(), 1.0)]), Duration::from_secs(1));
    pool.waiting = ["quick", "slow", "new", "newer"].map(|name| prints(name, "")).into();
    let order: Vec<_> = std::iter::from_fn(|| pool.next()).map(|job| job.name).collect();
    assert_eq!(order, ["slow", "quick", "new", "newer"]);
}

#[test]
fn each_program_runs_once() {
    let jobs = ["a", "b", "c", "d"].map(|name| prints(name, name)).into();
    let (mut ended, broken) = run(&[("b", 3.0)], vec![Event::Built(jobs), Event::Done]);
    ended.sort_by(|a, b| a.name.cmp(&b.name));
    assert_eq!(ended.iter().map(|f| f.name.as_str()).collect::<Vec<_>>(), ["a", "b", "c", "d"]);
    assert!(broken.is_empty() && ended.iter().all(|f| f.failure.is_none() && f.counts.passed == 1));
}

#[test]
fn a_program_that_needs_the_library_waits_for_it() {
    let job = Job { needs: vec!["CRATON_LIBRARY"], ..prints("programs", "$CRATON_LIBRARY >&2; exit 1") };
    let events =
        vec![Event::Built(vec![job.clone()]), Event::Library("CRATON_LIBRARY", "/there.so".into()), Event::Done];
    let (ended, broken) = run(&[], events);
    assert!(broken.is_empty() && ended[0].failure.as_ref().is_some_and(|f| f.contains("/there.so")), "{ended:?}");

    let (ended, broken) = run(&[], vec![Event::Built(vec![job]), Event::Broken("no library".into()), Event::Done]);
    assert!(ended.is_empty());
    assert_eq!(broken, ["no library", "programs did not run: a library was not built"]);
}
