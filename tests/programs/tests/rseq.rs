use craton_programs::{Output, Program, cc, missing};
use std::env;
use std::path::Path;

fn run(program: Program, path: &Path) -> Output {
    let output = program.preloaded().run();
    output.assert_success();
    output.assert_served(path.file_name().and_then(|n| n.to_str()).expect("the program has a name"));
    output
}

fn number(output: &Output, word: &str) -> u64 {
    let mut words = output.stdout.split_whitespace().skip_while(|w| *w != word);
    words.nth(1).and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("no {word}:\n{output}"))
}

#[test]
fn objects_stay_whole_under_preemption_migration_signals_forks_and_theft() {
    let program = cc("rseq.c", &[]);
    let full = env::var_os("CRATON_FULL").is_some();
    for option in ["caches=cpu", "caches=auto"] {
        let seconds = if full { "120" } else { "1" };
        let run = self::run(
            Program::new(&program).arg("stress").env("SECONDS_OF_STRESS", seconds).options(option).timeout(300),
            &program,
        );
        assert!(number(&run, "interruptions") > 0, "{run}");
    }
}

#[test]
fn of_the_registered_area_only_the_pointer_to_the_section_changes() {
    let program = cc("rseq.c", &[]);
    let output = run(Program::new(&program).arg("area").options("caches=cpu"), &program);
    if output.stats[0].cache_mode > 0 {
        assert!(number(&output, "sections") > 0, "the sections ran:\n{output}");
    }
    let output = run(Program::new(&program).arg("area").options("caches=thread"), &program);
    if output.stats[0].cache_mode > 0 {
        assert_eq!(number(&output, "sections"), 0, "nobody asked for sections:\n{output}");
    }
}

#[test]
fn without_registration_every_thread_has_its_own_cache() {
    let program = cc("rseq.c", &[]);
    let without = Program::new(&program).env("GLIBC_TUNABLES", "glibc.pthread.rseq=0");
    let output = run(without.clone().arg("threads").options("caches=cpu"), &program);
    let stats = &output.stats[0];
    assert_eq!((stats.cache_mode, stats.processor_caches), (0, 0), "{output}");
    assert_eq!(stats.threads_seen, 20 + 1, "{output}");
    run(without.arg("stress").env("SECONDS_OF_STRESS", "1").options("caches=cpu"), &program);
}

#[test]
fn under_valgrind_every_thread_has_its_own_cache() {
    if missing("valgrind", "valgrind") {
        return;
    }
    let program = cc("rseq.c", &[]);
    let output = Program::new("valgrind")
        .args(["--tool=none", "-q"])
        .arg(&program)
        .arg("threads")
        .options("caches=cpu")
        .preloaded()
        .run();
    output.assert_success();
    let stats = output.stats.iter().find(|s| s.threads_seen > 1).unwrap_or_else(|| panic!("not served:\n{output}"));
    assert_eq!((stats.cache_mode, stats.threads_seen), (0, 20 + 1), "{output}");
    assert!(output.stderr.contains("\"caches=cpu\": restartable sequences are not available"), "{output}");
}

#[test]
fn threads_that_sleep_cost_less_than_a_kibibyte_each() {
    let program = cc("sleepers.c", &[]);
    for option in ["caches=auto", "caches=cpu"] {
        let start = |part| run(Program::new(&program).arg(part).options(option).timeout(300), &program);
        let (idle, busy) = (start("idle"), start("busy"));
        if busy.stdout.contains("the system allows") || idle.stdout.contains("the system allows") {
            eprintln!("skipped: {}", busy.stdout);
            return;
        }
        if busy.stats[0].cache_mode == 0 {
            eprintln!("skipped: no restartable sequences here, so that each thread has a cache of its own");
            return;
        }
        let threads = number(&busy, "threads");
        let kib = number(&busy, "rss_kib").saturating_sub(number(&idle, "rss_kib"));
        eprintln!("{option}: {threads} threads, {kib} KiB more than without allocating");
        assert!(kib <= threads, "more than 1 KiB for each thread:\n{idle}\n{busy}");
        // No thread got a cache, and few objects are between threads and slabs.
        let stats = &busy.stats[0];
        assert!(stats.threads_seen <= 2, "sleeping threads have caches:\n{busy}");
        assert!(stats.metadata_bytes < 2 << 20, "{busy}");
    }
}
