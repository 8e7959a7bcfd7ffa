use craton_programs::{Output, Program, cc, cxx, missing};
use std::fs;
use tempfile::TempDir;

const OPTION: &str = "hardened=1";

fn run(part: &str, options: &str) -> Output {
    let output = Program::new(cc("hardened.c", &["-w", "-pthread"])).arg(part).preloaded().options(options).run();
    output.assert_success();
    output
}

#[test]
fn what_goes_out_is_zero_behind_its_link() {
    for options in [OPTION, "hardened=1,caches=cpu", "hardened=1,caches=thread"] {
        run("cleared", options);
    }
}

#[test]
fn a_freed_object_does_not_come_back_at_once() {
    run("waits", OPTION);
    run("waits", "hardened=1,caches=cpu");
}

#[test]
fn fresh_objects_are_no_row() {
    run("order", OPTION);
    run("order", "hardened=1,caches=cpu");
}

#[test]
fn an_overflow_out_of_a_large_object_faults() {
    run("guards", OPTION);
    run("guards", "hardened=1,page_heap=frames");
}

#[test]
fn threads_and_forks_among_them_are_served() {
    for options in [OPTION, "hardened=1,caches=cpu", "hardened=1,debug=all:48", "hardened=1,guard_sample=50"] {
        run("threads", options);
    }
}

#[test]
fn another_value_is_one_line_and_the_program_goes_on() {
    for value in ["2", "", "on"] {
        let output = Program::new("true").preloaded().options(&format!("hardened={value}")).run();
        output.assert_success();
        let line = format!("craton: option \"hardened={value}\": bad value (0 or 1, before the");
        assert!(output.stderr.starts_with(&line) && output.stderr.lines().count() == 1, "{output}");
    }
}

#[test]
fn objects_of_heaps_and_of_other_libraries_are_served() {
    let output = Program::new(cxx("cxx.cpp", &["-std=c++17", "-pthread", "-w"])).preloaded().options(OPTION).run();
    assert!(output.signal.is_none(), "{output}");
}

#[test]
fn python_runs() {
    let path = "/usr/bin/python3";
    if missing(path, "python3") {
        return;
    }
    let script = "import json, subprocess, sys, threading\n\
        def work(n): [json.loads(json.dumps({str(i): [i] * (i % 40) for i in range(3000)})) for _ in range(5)]\n\
        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]\n\
        [t.start() for t in threads]; [t.join() for t in threads]\n\
        print(subprocess.run([sys.executable, '-c', 'print(len(sorted(map(str, range(50000)))))'], capture_output=True).stdout)";
    let output =
        Program::new(path).env("PYTHONMALLOC", "malloc").args(["-c", script]).preloaded().options(OPTION).run();
    output.assert_success();
    output.assert_served("python3");
    assert_eq!(output.stdout, "b'50000\\n'\n", "{output}");
}

#[test]
fn gcc_compiles() {
    if missing("gcc", "gcc") {
        return;
    }
    let folder = TempDir::new().expect("a temporary folder can be made");
    let (source, program) = (folder.path().join("a.c"), folder.path().join("a"));
    fs::write(&source, "#include <stdio.h>\nint main(void) { puts(\"made\"); return 0; }\n")
        .expect("it can be written");
    let output = Program::new("gcc").arg("-O2").arg(&source).arg("-o").arg(&program).preloaded().options(OPTION).run();
    output.assert_success();
    let output = Program::new(&program).preloaded().options(OPTION).run();
    assert_eq!(output.stdout, "made\n", "{output}");
}
