use super::*;

fn run(allocator: &str, index: usize, wall_s: f64, status: Status) -> Run {
    Run {
        allocator: allocator.to_owned(),
        index,
        wall_s,
        user_s: wall_s / 2.0,
        sys_s: 0.0,
        peak_rss_bytes: 1 << 20,
        steady_rss_bytes: None,
        minor_faults: 1000,
        major_faults: 0,
        hugepage_bytes: 1 << 19,
        hugepage_coverage: Some(0.5),
        samples: Vec::new(),
        load: None,
        status,
        stderr: "one\ntwo \x1b[2J\n".to_owned(),
    }
}

fn shown(runs: &[Run], colour: bool) -> String {
    let measured = Measured { runs: runs.to_vec(), ..Measured::default() };
    show(&measured, &["./program".into(), "two\nlines".into()], &["a note".to_owned()], colour, 200)
}

fn good() -> Vec<Run> {
    let round =
        |index, glibc, craton| [run("glibc", index, glibc, Status::Ok), run("craton", index, craton, Status::Ok)];
    [round(0, 2.0, 1.0), round(1, 4.0, 2.4), round(2, 3.0, 1.8), round(3, 3.0, 1.8), round(4, 3.0, 1.8)].concat()
}

fn line<'a>(text: &'a str, start: &str) -> Vec<&'a str> {
    let line = text.lines().find(|line| line.starts_with(start)).unwrap_or_default();
    line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect()
}

#[test]
fn an_allocator_is_a_row_with_medians_and_ratios() {
    let text = shown(&good(), false);
    assert!(text.starts_with("./program two?lines\nmedians; × is the ratio to glibc"), "{text}");
    let glibc = ["glibc", "5", "3.000 s", "-", "-", "1.500 s", "-", "1.0 MiB", "-", "-", "-", "1,000", "-", "0"];
    assert_eq!(line(&text, "glibc"), [&glibc[..], &["512.0 KiB", "50 %"]].concat(), "{text}");
    let craton = line(&text, "craton");
    assert_eq!(craton[..5], ["craton", "5", "1.800 s", "0.60", "0.50–0.60"], "{text}");
    let words = "\nOn Craton, compared with glibc: 40 % less wall time (95 %: 40 to 50 %), 40 %\nless CPU time \
                 (95 %: 40 to 50 %), no clear difference in peak memory or page\nfaults.\n";
    assert!(text.contains(words), "{text}");
    assert!(text.contains("\na note\n") && !text.contains("do not count") && !text.contains('\x1b'), "{text}");
}

#[test]
fn no_line_is_longer_than_the_terminal() {
    let measured = Measured { runs: good(), ..Measured::default() };
    for colour in [false, true] {
        let text = show(&measured, &["x".into()], &[], colour, 80);
        let plain = text.replace("\x1b[32m", "").replace("\x1b[0m", "");
        let table: Vec<&str> = plain.lines().collect();
        assert!(table.iter().all(|line| line.chars().count() <= 80), "{text}");
        assert_eq!(table.iter().filter(|line| line.starts_with("glibc ")).count(), 3, "{text}");
    }
}

#[test]
fn colour_says_what_is_sure() {
    let text = shown(&good(), true);
    assert_eq!((text.matches("\x1b[32m").count(), text.matches("\x1b[31m").count()), (2, 0), "{text}");
    let mut runs = good();
    runs.iter_mut().filter(|run| run.allocator == "craton").for_each(|run| run.wall_s = 5.0);
    assert_eq!(shown(&runs, true).matches("\x1b[31m").count(), 1);
    // Four rounds are too few.
    let text = shown(&good()[..8], true);
    assert!(!text.contains('\x1b') && text.contains("(too few rounds to be sure)"), "{text}");
}

#[test]
fn each_clear_difference_is_told() {
    let mut runs = good();
    for run in &mut runs {
        run.wall_s = 1.0;
        (run.user_s, run.minor_faults) = if run.allocator == OURS { (0.54, 3000) } else { (1.0, 1000) };
    }
    let words = in_words(&runs).unwrap();
    let wanted = "46 % less CPU time, 200 % more page faults, no clear difference in wall time or peak memory.";
    assert!(words.ends_with(wanted), "{words}");
    runs.truncate(4);
    let wanted = "46 % less CPU time, 200 % more page faults, no difference in wall time or peak memory (too few";
    assert!(in_words(&runs).unwrap().contains(wanted));
}

#[test]
fn a_failed_run_is_a_row_with_the_end_of_its_errors() {
    let mut runs = good();
    runs[3].status = Status::Signal(11);
    let text = shown(&runs, false);
    assert_eq!(line(&text, "craton")[1], "4/5", "{text}");
    assert!(text.contains("  craton  round 2  signal 11\n"), "{text}");
    assert!(text.contains("last on standard error, craton, round 2:\n  one\n  two ?[2J\n"), "{text}");
    runs.iter_mut().for_each(|run| run.status = Status::NotServed);
    let text = shown(&runs, false);
    assert!(!text.contains("medians") && text.contains("craton: no process used its malloc: likely"), "{text}");
    assert_eq!(text.matches("not served\n").count(), 10, "{text}");
}

#[test]
fn no_runs_are_no_table() {
    assert_eq!(shown(&[], true), "./program two?lines\na note\n");
}

#[test]
fn a_fault_of_an_allocator_is_named_where_a_run_on_it_failed() {
    let all = ["peer: asks for huge pages".to_owned(), "peer: lacks a function".to_owned()];
    let (figures, faults) = all.split_at(1);
    let ended = |allocator, status| [run("peer", 0, 1.0, Status::Ok), run(allocator, 1, 1.0, status)];
    assert_eq!(known(&all, faults, &ended("peer", Status::Ok)), figures);
    assert_eq!(known(&all, faults, &ended("other", Status::NotServed)), figures);
    assert_eq!(known(&all, faults, &ended("peer", Status::NotServed)), all);
}

#[test]
fn an_allocator_of_the_programs_own_is_named() {
    let mut measured = Measured { runs: good(), ..Measured::default() };
    let mut service = |by: &[(&str, usize)]| {
        let by = by.iter().map(|(object, processes)| ((*object).to_owned(), *processes)).collect();
        let service = Service { processes: 5, by, largest_without: None };
        measured.service.insert(BASE.to_owned(), service);
        notes(&measured, &["x".into()], &[], &[]).join("\n")
    };
    let (own, libc) = ("/usr/lib/libjemalloc.so.2", "/usr/lib/libc.so.6");
    assert!(service(&[(own, 5)]).contains(&format!("the program's malloc is that of {own}, which the program brings")));
    let text = service(&[(libc, 4), (own, 1)]);
    assert!(text.contains(&format!("the malloc of 1 of 5 processes is that of {own}")), "{text}");
    assert!(!service(&[(libc, 5)]).contains("brings along"));
}

#[test]
fn a_program_that_contains_craton_is_named() {
    let place = tempfile::tempdir().unwrap();
    let (source, file) = (place.path().join("x.c"), place.path().join("x"));
    for (text, is_named) in [("int craton_segment; int main(void) {}", true), ("int main(void) {}", false)] {
        std::fs::write(&source, text).unwrap();
        assert!(std::process::Command::new("gcc").arg("-o").args([&file, &source]).status().unwrap().success());
        let said = contains_craton(&[file.clone().into()]);
        assert_eq!(said.is_some_and(|line| line.contains("contains Craton")), is_named, "{text}");
    }
}

#[test]
fn a_server_has_its_own_columns_and_more_requests_are_a_gain() {
    use craton_lab::measure::server::Load;
    let served = |operations_per_s, mut run: Run| {
        let results = Results { operations_per_s: Some(operations_per_s), p50_s: Some(2e-3), ..Results::default() };
        run.load = Some(Load { start_s: 0.0, end_s: run.wall_s, results, after_bytes: Some(3 << 20) });
        run
    };
    let rate = |run: &Run| if run.allocator == OURS { 1500.0 } else { 1000.0 };
    let runs: Vec<Run> = good().into_iter().map(|run| served(rate(&run), run)).collect();
    let text = shown(&runs, true);
    assert_eq!(line(&text, "craton")[..4], ["craton", "5", "1,500", "\x1b[32m1.50\x1b[0m"], "{text}");
    assert!(text.contains("p50") && !text.contains("p99") && text.contains("after load"), "{text}");
    assert!(in_words(&runs).unwrap().contains("50 % more requests per second"), "{text}");
    let nothing: Vec<Run> = good().into_iter().map(|run| Run { load: Some(Load::default()), ..run }).collect();
    let measured = Measured { runs: nothing, ..Measured::default() };
    assert!(notes(&measured, &["x".into()], &[], &[])[0].contains("--figure 'ops=REGEX'"));
    let asked = [Pattern::parse("p99=slow ([0-9]+)").unwrap()];
    assert!(notes(&measured, &["x".into()], &asked, &[])[0].starts_with("--figure 'p99=slow ([0-9]+)': no number"));
}
