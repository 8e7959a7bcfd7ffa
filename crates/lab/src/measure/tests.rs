use super::*;
use std::cell::RefCell;
use std::time::Instant;

fn plan<'a>(stop: &'a AtomicBool, allocators: Vec<Allocator>, command: &[&str]) -> Plan<'a> {
    Plan {
        command: command.iter().map(OsString::from).collect(),
        allocators,
        runs: 1,
        warmup: 0,
        prove: false,
        processors: Vec::new(),
        timeout: Some(Duration::from_secs(300)),
        server: None,
        stop,
        progress: &|_| {},
    }
}

fn one(command: &[&str]) -> Run {
    let stop = AtomicBool::new(false);
    let mut runs = measure(&plan(&stop, vec![Allocator::glibc()], command)).runs;
    assert_eq!(runs.len(), 1);
    runs.remove(0)
}

#[test]
fn a_small_command_is_small_though_this_process_is_large() {
    // Filled: each page is there.
    let large = vec![7u8; 64 << 20];
    let run = one(&["true"]);
    std::hint::black_box(&large);
    assert_eq!(run.status, Status::Ok);
    assert!((64 << 10..3 << 20).contains(&run.peak_rss_bytes), "{run:?}");
    assert!(run.minor_faults > 0 && run.wall_s > 0.0, "{run:?}");
}

#[test]
fn a_large_command_is_large_and_its_children_count() {
    let hold = "x=$(head -c 20000000 /dev/zero | tr '\\0' x); test ${#x} = 20000000";
    let run = one(&["sh", "-c", &format!("({hold}); exit 0")]);
    assert_eq!(run.status, Status::Ok);
    assert!(run.peak_rss_bytes > 15 << 20, "{run:?}");
    assert!(run.cpu_s() > 0.0 && run.minor_faults > 1000, "{run:?}");
}

#[test]
fn runs_take_turns_after_the_warm_up() {
    let stop = AtomicBool::new(false);
    let turns = RefCell::new(Vec::new());
    let progress = |p: Progress<'_>| turns.borrow_mut().push((p.allocator.to_owned(), p.round, p.done, p.total));
    let other = Allocator { name: "other".to_owned(), ..Allocator::glibc() };
    let mut plan = plan(&stop, vec![Allocator::glibc(), other], &["true"]);
    (plan.runs, plan.warmup, plan.progress) = (2, 1, &progress);
    let runs = measure(&plan).runs;
    let names: Vec<_> = runs.iter().map(|r| (r.allocator.as_str(), r.index)).collect();
    assert_eq!(names, [("glibc", 0), ("other", 0), ("glibc", 1), ("other", 1)]);
    let turns = turns.borrow();
    assert_eq!(turns.len(), 6);
    assert_eq!(turns[1], ("other".to_owned(), None, 1, 6));
    assert_eq!(turns[2], ("glibc".to_owned(), Some(0), 2, 6));
}

#[test]
fn failures_have_their_status_and_the_end_of_standard_error() {
    let run = one(&["sh", "-c", "echo out; echo first >&2; exit 3"]);
    assert_eq!((run.status, run.stderr.as_str()), (Status::Exit(3), "first\n"));
    let run = one(&["sh", "-c", "kill -9 $$"]);
    assert_eq!(run.status, Status::Signal(9));
    let run = one(&["sh", "-c", "head -c 300000 /dev/zero | tr '\\0' a >&2; echo end >&2"]);
    assert_eq!((run.status, run.stderr.len()), (Status::Ok, STDERR_BYTES));
    assert!(run.stderr.ends_with("aend\n"));
}

#[test]
fn a_command_that_is_not_there_cannot_start() {
    let run = one(&["craton-no-such-program"]);
    let Status::CannotStart(why) = &run.status else { panic!("{run:?}") };
    assert!(why.contains("craton-no-such-program") && why.contains("No such file"), "{why}");
    assert!(matches!(one(&[]).status, Status::CannotStart(_)));
}

#[test]
fn a_library_that_is_not_there_cannot_start_and_an_unloadable_one_does_not_serve() {
    let stop = AtomicBool::new(false);
    let missing = Allocator::preloaded("missing", "/nonexistent/library.so");
    let text = Allocator::preloaded("text", "/proc/self/status");
    let bare = Allocator::preloaded("bare", "libcraton-no-such-library.so");
    let runs = measure(&plan(&stop, vec![missing, text, bare], &["true"])).runs;
    assert!(
        matches!(&runs[0].status, Status::CannotStart(why) if why.contains("/nonexistent/library.so")),
        "{:?}",
        runs[0]
    );
    assert_eq!(runs[1].status, Status::NotServed, "{:?}", runs[1]);
    assert_eq!(runs[2].status, Status::NotServed, "{:?}", runs[2]);
}

#[test]
fn a_run_that_takes_too_long_is_killed_with_its_children() {
    let stop = AtomicBool::new(false);
    let mut plan = plan(&stop, vec![Allocator::glibc()], &["sh", "-c", "sleep 1000 & echo $! >&2; wait"]);
    plan.timeout = Some(Duration::from_millis(300));
    plan.warmup = 1;
    let runs = measure(&plan).runs;
    assert_eq!(runs.len(), 1, "the warm-up that took too long is the only run");
    assert_eq!(runs[0].status, Status::TimedOut);
    assert_gone(runs[0].stderr.trim());
}

#[test]
fn what_a_command_leaves_behind_is_killed() {
    let run = one(&["sh", "-c", "sleep 1000 & echo $! >&2"]);
    assert_eq!(run.status, Status::Ok);
    assert_gone(run.stderr.trim());
}

fn assert_gone(pid: &str) {
    assert!(!pid.is_empty() && pid.bytes().all(|b| b.is_ascii_digit()), "{pid:?}");
    let deadline = Instant::now() + Duration::from_secs(300);
    loop {
        match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
            Ok(stat) if stat.contains("(sleep) Z") || !stat.contains("(sleep)") => return,
            Err(_) => return,
            Ok(stat) => assert!(Instant::now() < deadline, "still there: {stat}"),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn stop_ends_a_run_under_way_and_leaves_it_out() {
    let stop = AtomicBool::new(false);
    let plan = plan(&stop, vec![Allocator::glibc()], &["sleep", "1000"]);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(100));
            stop.store(true, Relaxed);
        });
        assert_eq!(measure(&plan), Measured::default());
    });
}

#[test]
fn variables_reach_the_command_alone_and_preloads_are_kept_behind() {
    let stop = AtomicBool::new(false);
    let mut own = Allocator::preloaded("own", "libc.so.6");
    own.env = vec![("LD_PRELOAD".into(), "libm.so.6".into()), ("CRATON_LAB_TEST".into(), "a=b c".into())];
    let bad = Allocator { env: vec![("A=B".into(), "".into())], ..Allocator::glibc() };
    let show = "echo \"$LD_PRELOAD|$CRATON_LAB_TEST\" >&2";
    let runs = measure(&plan(&stop, vec![own, bad], &["sh", "-c", show])).runs;
    assert_eq!((&runs[0].status, runs[0].stderr.as_str()), (&Status::Ok, "libc.so.6:libm.so.6|a=b c\n"));
    assert!(matches!(runs[1].status, Status::CannotStart(_)));
    assert_eq!(std::env::var_os("CRATON_LAB_TEST"), None);
}

/// Serves no malloc.
const IDLE: &str = "libm.so.6";
const SERVING: &str = "libc.so.6";

#[test]
fn an_allocator_has_to_prove_that_it_serves() {
    let stop = AtomicBool::new(false);
    let allocators = || vec![Allocator::preloaded("idle", IDLE), Allocator::preloaded("serving", SERVING)];
    let mut plan = plan(&stop, allocators(), &["sh", "-c", "true | cat"]);
    (plan.prove, plan.runs) = (true, 2);
    let measured = measure(&plan);
    let rows: Vec<_> = measured.runs.iter().map(|r| (r.allocator.as_str(), r.index, r.status.clone())).collect();
    let ok = |index| ("serving", index, Status::Ok);
    assert_eq!(rows, [("idle", 0, Status::NotServed), ok(0), ok(1)], "who does not serve runs once");
    let service = &measured.service["serving"];
    assert!(service.processes >= 2 && service.served_by(SERVING.as_ref()) == service.processes, "{service:?}");
    assert!(service.mainly().is_some_and(|object| object.ends_with("/libc.so.6")), "{service:?}");

    plan.command = ["sh", "-c", "exit 4"].map(OsString::from).to_vec();
    let failed = measure(&plan).runs;
    assert_eq!(failed.len(), 4, "a failure is no proof of anything");
    assert!(failed.iter().all(|run| run.status == Status::Exit(4)), "{failed:?}");

    plan.command = ["env", "-i", "sh", "-c", "exec env -i true"].map(OsString::from).to_vec();
    plan.allocators = vec![Allocator::preloaded("serving", SERVING)];
    assert_eq!(measure(&plan).service["serving"].processes, 1, "env itself");
}

#[test]
fn a_command_stays_on_the_processors_it_was_given() {
    let stop = AtomicBool::new(false);
    let allowed = crate::machine::processors();
    for list in [vec![], vec![allowed[0]], allowed.clone()] {
        let show = "grep Cpus_allowed_list /proc/self/status >&2";
        let mut plan = plan(&stop, vec![Allocator::glibc()], &["sh", "-c", show]);
        plan.processors = list.clone();
        let told = measure(&plan).runs.remove(0).stderr;
        let (_, told) = told.trim().split_once(':').unwrap();
        let expected = if list.is_empty() { &allowed } else { &list };
        assert_eq!(crate::machine::processor_list(told.trim()).as_ref(), Some(expected), "{list:?}: {told}");
    }
}

#[test]
fn memory_is_sampled_while_a_command_runs() {
    let hold = "x=$(head -c 20000000 /dev/zero | tr '\\0' x); sleep $0; test ${#x} = 20000000";
    // On a busy machine the sampler comes later.
    let mut runs = ["0.4", "2", "8"].iter().map(|seconds| one(&["sh", "-c", hold, seconds]));
    let run = runs.find(|run| run.steady_rss_bytes.is_some()).expect("sampled in eight seconds");
    let steady = run.steady_rss_bytes.unwrap();
    assert!((15 << 20..=run.peak_rss_bytes).contains(&steady), "{steady} of {}", run.peak_rss_bytes);
    assert!(run.hugepage_coverage.is_some_and(|share| (0.0..=1.0).contains(&share)), "{:?}", run.hugepage_coverage);
    assert!(run.samples.windows(2).all(|pair| pair[0].at_s < pair[1].at_s));
    assert!(run.samples.last().unwrap().at_s <= run.wall_s + 0.1);
}

#[test]
fn each_status_has_its_words() {
    let words = |status: Status| status.to_string();
    assert_eq!(words(one(&["sh", "-c", "exit 200"]).status), "exit 200");
    assert_eq!(words(Status::Ok), "ok");
    assert_eq!(words(Status::Signal(11)), "signal 11");
    assert_eq!(words(Status::TimedOut), "timed out");
    assert_eq!(words(Status::NotServed), "not served");
    assert_eq!(words(Status::CannotStart("x".to_owned())), "cannot start: x");
}
