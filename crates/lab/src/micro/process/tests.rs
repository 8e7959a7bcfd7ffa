use super::*;
use crate::scratch::Scratch;

fn end(script: &str, limit: Duration, stop: bool) -> Ended {
    let directory = Scratch::new("a test").unwrap();
    let command: Vec<OsString> = ["sh", "-c", script].iter().map(OsString::from).collect();
    let variables = [("CRATON_TEST".into(), "here".into())];
    let process = Process::start(&command, &variables, directory.path(), "test", limit).unwrap();
    process.finish(&AtomicBool::new(stop)).unwrap()
}

#[test]
fn what_a_process_wrote_comes_back() {
    let Ended::Done(output) = end("echo $CRATON_TEST; echo err >&2", Duration::from_secs(300), false) else {
        panic!("it ends")
    };
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("here\n", "err\n"));
    assert_eq!(output.failure(), None);
}

#[test]
fn a_failure_has_the_status_and_the_last_words() {
    let Ended::Done(output) = end("echo why >&2; echo == >&2; exit 3", Duration::from_secs(300), false) else {
        panic!("it ends")
    };
    assert_eq!(output.failure().as_deref(), Some("exit 3: why"));
    let Ended::Done(output) = end("kill -11 $$", Duration::from_secs(300), false) else { panic!("it ends") };
    assert_eq!(output.failure().as_deref(), Some("signal 11"));
}

#[test]
fn a_process_ends_when_its_time_is_over_or_the_caller_stops() {
    assert!(matches!(end("exec sleep 1000", Duration::from_millis(5), false), Ended::TimedOut));
    assert!(matches!(end("exec sleep 1000", Duration::from_secs(300), true), Ended::Stopped));
}
