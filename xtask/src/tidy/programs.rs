//! Every file of tests is part of a program of tests.
//!
//! **What.** Where `tests/main.rs` is the one program of a crate's tests, cargo does not look for the
//! other files in `tests/`. One that neither `main.rs` nor `loom.rs` names would never run.

use super::Complaint;
use super::files::File;

/// Complains of each file that no program names.
pub fn check(files: &[File]) -> Vec<Complaint> {
    let mains = files.iter().filter_map(|file| Some((file, file.path.strip_suffix("tests/main.rs")?)));
    mains.flat_map(|(main, package)| unnamed(files, main, &format!("{package}tests/"))).collect()
}

fn unnamed(files: &[File], main: &File, folder: &str) -> Vec<Complaint> {
    let loom = files.iter().find(|file| file.path == format!("{folder}loom.rs"));
    let is_named = |module: &str| {
        let line = format!("mod {module};");
        [Some(main), loom].into_iter().flatten().any(|program| program.text.lines().any(|l| l == line))
    };
    let modules = files.iter().filter_map(|file| {
        let module = file.path.strip_prefix(folder)?.strip_suffix(".rs")?;
        (!module.contains('/') && !["main", "loom"].contains(&module)).then_some((file, module))
    });
    let unnamed = modules.filter(|(_, module)| !is_named(module));
    let text = |module: &str| format!("never runs: say `mod {module};` in {folder}main.rs or {folder}loom.rs");
    unnamed.map(|(file, module)| Complaint::new(&file.path, 0, text(module))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(main: &str) -> Vec<String> {
        let file = |path: &str, text: &str| File { path: path.into(), text: text.into(), rust: None };
        let files = [
            file("a/tests/main.rs", main),
            file("a/tests/loom.rs", "#[allow(dead_code)]\nmod loom_x;\n"),
            file("a/tests/x.rs", ""),
            file("a/tests/loom_x.rs", ""),
            file("a/tests/common/mod.rs", ""),
            file("b/tests/y.rs", ""),
        ];
        check(&files).into_iter().map(|c| c.to_string()).collect()
    }

    #[test]
    fn a_file_that_no_program_names_fails() {
        let expected = "a/tests/x.rs: never runs: say `mod x;` in a/tests/main.rs or a/tests/loom.rs";
        assert_eq!(complaints("mod common;\n"), [expected]);
        assert_eq!(complaints("mod common;\nmod x;\n"), [""; 0]);
    }
}
