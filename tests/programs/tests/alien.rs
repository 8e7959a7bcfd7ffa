//! Libraries with another malloc.

use craton_programs::{Output, Program, cc, library};
use std::path::{Path, PathBuf};

const SHARED: [&str; 2] = ["-shared", "-fPIC"];

fn module() -> PathBuf {
    cc("alien_module.c", &SHARED)
}

fn run(part: &str, module: &Path) -> Output {
    Program::new(cc("alien.c", &["-rdynamic", "-ldl"])).arg(part).arg(module).preloaded().run()
}

fn passes(part: &str, module: &Path) {
    let output = run(part, module);
    output.assert_success();
    let name = cc("alien.c", &["-rdynamic", "-ldl"]);
    output.assert_served(name.file_name().and_then(|n| n.to_str()).expect("the program has a name"));
}

#[test]
fn what_a_namespace_has_allocated_goes_back_to_its_c_library() {
    passes("namespace", &module());
}

#[test]
fn what_one_of_several_namespaces_has_allocated_can_be_freed() {
    passes("namespaces", &module());
    passes("namespaces_in_threads", &module());
}

#[test]
fn two_copies_of_craton_take_each_others_objects() {
    let folder = library().parent().expect("the library lies in a folder");
    let (at, path) =
        (format!("-L{}", folder.display()), format!("-Wl,--disable-new-dtags,-rpath,{}", folder.display()));
    let linked = cc("alien_module.c", &[SHARED[0], SHARED[1], "-Wl,--no-as-needed", &at, "-lcraton", &path]);
    passes("namespace_with_craton", &linked);
}

#[test]
fn a_library_that_is_bound_deeply_shares_the_programs_malloc_and_keeps_its_own_names() {
    passes("deepbind", &module());
    passes("deepbind_lazily", &module());
}

#[test]
fn libraries_are_searched_for_where_the_caller_says() {
    let module = module();
    let folder = module.parent().expect("the library lies in a folder");
    // The dynamic linker finds it by the caller's address.
    let path = format!("-Wl,--enable-new-dtags,-rpath,{}", folder.display());
    let program = cc("alien.c", &["-rdynamic", "-ldl", &path]);
    let name = module.file_name().expect("the library has a name");
    Program::new(program).arg("search_path").arg(name).preloaded().run().assert_success();
}

#[test]
fn what_no_allocator_has_is_refused_with_the_likely_reason() {
    for part in ["inside", "unknown"] {
        let output = run(part, &module());
        assert_eq!(output.signal, Some(6), "{output}");
        let said = "not allocated by Craton; a library loaded by dlmopen has another allocator";
        assert!(output.stderr.contains(said), "{output}");
    }
}
