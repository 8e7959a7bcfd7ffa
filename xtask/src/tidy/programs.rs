//! Programs name every file of tests: cargo looks for no others.

use super::Complaint;
use super::files::File;

pub fn check(files: &[File]) -> Vec<Complaint> {
    let mains = files.iter().filter_map(|file| Some((file, file.path.strip_suffix("main.rs")?)));
    let of_tests = mains.filter(|(_, folder)| folder.contains("/tests/"));
    of_tests.flat_map(|(main, folder)| unnamed(files, main, folder)).collect()
}

fn unnamed(files: &[File], main: &File, folder: &str) -> Vec<Complaint> {
    let beside = || {
        files.iter().filter_map(|file| {
            let module = file.path.strip_prefix(folder)?.strip_suffix(".rs")?;
            (!module.contains('/')).then_some((file, module))
        })
    };
    let is_named = |module: &str| {
        let line = format!("mod {module};");
        beside().any(|(file, _)| file.text.lines().any(|l| l.trim() == line))
    };
    let unnamed = beside().filter(|(_, module)| !["main", "loom"].contains(module) && !is_named(module));
    let text = |module: &str| format!("never runs: say `mod {module};` in {}", main.path);
    unnamed.map(|(file, module)| Complaint::new(&file.path, 0, text(module))).collect()
}

#[cfg(test)]
mod tests;
