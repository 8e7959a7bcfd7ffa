//! Much memory in a short time.

use craton_programs::{Program, missing};
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const TEMPLATES: &str = r#"
#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <regex>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

template <int N> struct Fib { static constexpr long value = Fib<N - 1>::value + Fib<N - 2>::value; };
template <> struct Fib<1> { static constexpr long value = 1; };
template <> struct Fib<0> { static constexpr long value = 0; };
template <std::size_t... I> long sum(std::index_sequence<I...>) { return (0L + ... + static_cast<long>(I)); }

int main() {
    std::map<std::string, std::variant<int, std::string>> tree;
    std::unordered_map<int, std::unique_ptr<std::vector<std::string>>> hash;
    for (int i = 0; i < 20000; i++) {
        if (i % 2) tree[std::to_string(i)] = i;
        else tree[std::to_string(i)] = std::string(i % 100, 'x');
        hash[i % 100] = std::make_unique<std::vector<std::string>>(i % 50, "a string that is too long to lie inside");
    }
    std::vector<std::thread> threads;
    std::vector<long> found(4);
    for (int t = 0; t < 4; t++) threads.emplace_back([&, t] {
        std::regex digits("^[0-9]*77$");
        found[t] = std::count_if(tree.begin(), tree.end(), [&](auto &e) { return std::regex_search(e.first, digits); });
    });
    for (auto &t : threads) t.join();
    std::cout << Fib<80>::value << ' ' << sum(std::make_index_sequence<500>()) << ' ' << tree.size() << ' '
              << found[0] << ' ' << found[3] << '\n';
}
"#;

fn with_file(name: &str, text: &str) -> (TempDir, PathBuf) {
    let folder = TempDir::new().expect("a temporary folder can be made");
    let path = folder.path().join(name);
    fs::create_dir_all(path.parent().expect("a file lies in a folder")).expect("a folder can be made");
    fs::write(&path, text).expect("a file can be written");
    (folder, path)
}

fn compile_and_run(flags: &[&str], served: &[&str]) {
    if missing("g++", "g++") {
        return;
    }
    let (folder, source) = with_file("templates.cpp", TEMPLATES);
    let program = folder.path().join("templates");
    let compiler = Program::new("g++").args(["-std=c++17", "-pthread", "-o"]).arg(&program).args(flags).arg(source);
    let output = compiler.env("TMPDIR", folder.path()).preloaded().timeout(300).run();
    output.assert_success();
    for exe in served {
        output.assert_served(exe);
    }
    let output = Program::new(&program).preloaded().run();
    output.assert_success();
    assert_eq!(output.stdout, "23416728348467685 124750 20000 200 200\n", "{output}");
    assert!(output.assert_served("templates").threads_seen >= 5, "main and four threads:\n{output}");
}

#[test]
fn gxx_compiles_templates_and_the_result_runs() {
    compile_and_run(&["-O1"], &["g++", "cc1plus", "as", "collect2", "ld"]);
}

#[test]
#[ignore = "nightly: optimizes all templates twice"]
fn gxx_optimizes_at_link_time() {
    compile_and_run(&["-O2", "-flto"], &["cc1plus", "lto-wrapper", "lto1-wpa", "lto1-ltrans"]);
}

/// Rust's distribution links `rustc` with a jemalloc, whose names precede a preloaded library's.
#[test]
fn cargo_builds_a_package_and_the_result_runs() {
    let cargo = env!("CARGO");
    if missing(cargo, "cargo") {
        return;
    }
    let code = r#"fn main() {
        let threads: Vec<_> = (0..4).map(|t| std::thread::spawn(move || {
            let words: std::collections::BTreeMap<_, _> = (0..5000).map(|i| (format!("{t}/{i}"), vec![i; 50])).collect();
            words.values().map(|v| v.len()).sum::<usize>()
        })).collect();
        println!("{}", threads.into_iter().map(|t| t.join().unwrap()).sum::<usize>());
    }"#;
    let (folder, _) = with_file("src/main.rs", code);
    let manifest = "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n";
    fs::write(folder.path().join("Cargo.toml"), manifest).expect("a manifest can be written");
    let build = Program::new(cargo).args(["build", "--offline", "--quiet"]).dir(folder.path()).preloaded();
    let output = build.env("CARGO_TARGET_DIR", folder.path().join("out")).timeout(300).run();
    output.assert_success();
    output.assert_served("cargo");
    output.assert_served("cc");

    let output = Program::new(folder.path().join("out/debug/tiny")).preloaded().run();
    output.assert_success();
    assert_eq!(output.stdout, "1000000\n");
    assert!(output.assert_served("tiny").threads_seen >= 5, "main and four threads:\n{output}");
}

#[test]
fn the_proof_fails_for_a_program_with_its_own_malloc() {
    if missing("gcc", "gcc") {
        return;
    }
    let own = r#"
        #include <stdio.h>
        #include <string.h>
        static _Alignas(16) char heap[1 << 24];
        static size_t used;
        void *malloc(size_t size) {
            size_t at = used + 16;
            used = at + ((size + 15) & ~(size_t)15);
            memcpy(heap + at - 16, &size, sizeof size);
            return heap + at;
        }
        void free(void *object) { (void)object; }
        void *calloc(size_t count, size_t size) { return malloc(count * size); }
        void *realloc(void *old, size_t size) {
            void *object = malloc(size);
            if (old != NULL) { size_t had; memcpy(&had, (char *)old - 16, sizeof had); memcpy(object, old, had < size ? had : size); }
            return object;
        }
        int main(void) { char *text = malloc(100); strcpy(text, "hello"); puts(text); return 0; }
    "#;
    let (folder, source) = with_file("own.c", own);
    let program: &Path = &folder.path().join("own");
    let flags = ["-O1", "-fno-builtin", "-o"];
    Program::new("gcc").args(flags).arg(program).arg(source).run().assert_success();
    let output = Program::new(program).preloaded().run();
    output.assert_success();
    assert_eq!(output.stdout, "hello\n");
    assert_eq!(output.stats.len(), 1, "the library was not loaded:\n{output}");
    assert!(catch_unwind(|| output.assert_served("own").refills).is_err(), "{output}");
}
