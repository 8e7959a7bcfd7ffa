use super::*;
use craton_lab::scratch::Scratch;

/// The "library" is the C library, so that its calls count.
fn shell(script: &str, fault: Option<Fault>) -> Run {
    let scratch = Scratch::new("a test").unwrap();
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let library = maps.lines().find_map(|line| line.split(' ').next_back().filter(|path| path.ends_with("/libc.so.6")));
    let place = Place { directory: scratch.path(), variables: &[], library: Path::new(library.unwrap()) };
    let command = ["sh", "-c", script].map(OsString::from);
    run(&command, &place, fault, Duration::from_secs(300)).unwrap()
}

fn index(name: &str) -> usize {
    CALLS.iter().position(|call| call.0 == name).unwrap()
}

#[test]
fn calls_are_counted_in_all_processes_and_the_chosen_one_fails() {
    let whole = shell("echo one; (echo two)", None);
    assert_eq!((whole.status.unwrap().code(), &*whole.stdout), (Some(0), &b"one\ntwo\n"[..]), "{}", whole.stderr);
    let write = index("write");
    assert!(whole.counts[write] >= 2, "{:?}", whole.counts);
    let first = shell("echo one; (echo two)", Some(Fault { call: write, first: 1, last: 1 }));
    assert_eq!(&*first.stdout, b"two\n", "{}", first.stderr);
    let all = shell("echo one; (echo two)", Some(Fault { call: write, first: 1, last: u64::MAX }));
    assert!(all.stdout.is_empty() && all.status.unwrap().code() != Some(0));
}

#[test]
fn a_command_that_takes_too_long_is_killed_with_its_children() {
    let scratch = Scratch::new("a test").unwrap();
    let place = Place { directory: scratch.path(), variables: &[], library: Path::new("/none") };
    let command = ["sh", "-c", "sleep 100 & wait"].map(OsString::from);
    let run = run(&command, &place, None, Duration::from_millis(200)).unwrap();
    assert!(run.status.is_none() && run.counts.iter().all(|count| *count == 0));
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let scratch = Scratch::new("a test").unwrap();
    let place = Place { directory: scratch.path(), variables: &[], library: Path::new("/none") };
    let why = run(&["no-such-program".into()], &place, None, Duration::from_secs(1)).unwrap_err();
    assert_eq!(why, "no-such-program is not there");
}
