use craton_programs::{Output, Program, cc, cxx, workspace};
use std::path::Path;

const STATS: &str = "page_heap=frames,stats=1";

fn run(program: &Path, part: &str, options: &str) -> Output {
    let output = Program::new(program).arg(part).preloaded().options(options).timeout(300).run();
    output.assert_success();
    output.assert_served(program.file_name().and_then(|n| n.to_str()).expect("the program has a name"));
    output
}

#[track_caller]
fn assert_heap(output: &Output, name: &str) {
    assert!(output.stderr.lines().any(|line| line == format!("  page_heap {name}")), "{output}");
}

#[test]
fn the_heap_is_the_one_that_was_asked_for_also_where_objects_come_before_the_library_is_told() {
    let plain = cc("plain.c", &[]);
    assert_heap(&run(&plain, "", "stats=1"), "temeraire");
    assert_heap(&run(&plain, "", "stats=1,page_heap=temeraire"), "temeraire");
    assert_heap(&run(&plain, "", STATS), "frames");
    // The last one counts.
    assert_heap(&run(&plain, "", "page_heap=temeraire,page_heap=frames,stats=1"), "frames");
    // Its constructors run before the library's.
    let output = run(&cxx("early_late.cpp", &[]), "", STATS);
    assert_heap(&output, "frames");
    assert_eq!(output.stdout, "end\n");
}

#[test]
fn threads_and_objects_of_all_sizes_live_on_frames() {
    run(&cc("large.c", &["-rdynamic", "-pthread"]), "any_size", "page_heap=frames");
}

#[test]
fn a_hard_limit_holds_on_frames() {
    let include = format!("-I{}", workspace().join("crates/preload/include").display());
    run(&cc("limited.c", &[&include, "-pthread", "-ldl"]), "hard_refuses", "page_heap=frames,hard_limit=128M");
}

#[test]
fn a_heap_that_there_is_cannot_be_exchanged() {
    let program = cc("page_heap.c", &["-ldl"]);
    run(&program, "temeraire", "");
    run(&program, "frames", "page_heap=frames");
}
