//! Compares the fast paths' instructions in the release build, by objdump, with
//! `tests/programs/golden/fast-path.txt`, which `--fix` rewrites.
//!
//! With another compiler than the listing's, or compiler flags (sanitizers), nothing is compared.

mod listing;

use crate::library::library;

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

const FUNCTIONS: [(&str, &str); 6] = [
    ("malloc", "malloc"),
    ("free", "free"),
    ("calloc", "calloc"),
    ("_Znwm", "operator new(size_t)"),
    ("_ZdlPv", "operator delete(void *)"),
    ("_ZdlPvm", "operator delete(void *, size_t)"),
];
const GOLDEN: &str = "tests/programs/golden/fast-path.txt";
const HEAD: &str = "# The fast paths as compiled; `cargo xtask golden --fix` writes this.\n";

#[derive(Debug)]
enum Outcome {
    Same,
    Skipped(String),
}

pub fn run(fix: bool) -> ExitCode {
    match outcome(fix) {
        Ok(Outcome::Same) => {
            println!("golden: {GOLDEN} {}", if fix { "written" } else { "is what the library has" });
            ExitCode::SUCCESS
        }
        Ok(Outcome::Skipped(why)) => {
            println!("golden: nothing compared: {why}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("golden: {why}");
            ExitCode::FAILURE
        }
    }
}

fn outcome(fix: bool) -> Result<Outcome, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    for flags in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS"] {
        if env::var_os(flags).is_some_and(|value| !value.is_empty()) {
            return Ok(Outcome::Skipped(format!("{flags} is set, and changes the code")));
        }
    }
    let compiler = format!("# {}\n", output(Command::new("rustc").arg("-V").current_dir(root))?.trim_end());
    let path = root.join(GOLDEN);
    let golden = if fix {
        String::new()
    } else {
        fs::read_to_string(&path).map_err(|e| format!("{GOLDEN}: {e}; `cargo xtask golden --fix` writes it"))?
    };
    let listed = golden.lines().nth(1).unwrap_or_default();
    if !fix && listed != compiler.trim_end() {
        return Ok(Outcome::Skipped(format!("the listing is of {:?}, this is {:?}", listed, compiler.trim_end())));
    }
    let found = format!("{HEAD}{compiler}{}", disassembled(&library(root)?)?);
    if fix {
        let folder = path.parent().unwrap_or(root);
        let written = fs::create_dir_all(folder).and_then(|()| fs::write(&path, found));
        return written.map(|()| Outcome::Same).map_err(|e| format!("{GOLDEN}: {e}"));
    }
    match listing::difference(&golden, &found) {
        None => Ok(Outcome::Same),
        Some(text) => Err(format!(
            "the fast paths have changed (- {GOLDEN}, + the library):\n{text}\
             If that is wanted, run `cargo xtask golden --fix`, and say in the commit what it costs or gains."
        )),
    }
}

fn disassembled(library: &Path) -> Result<String, String> {
    let names = output(Command::new("nm").args(["-D", "--defined-only"]).arg(library))?;
    let code = output(Command::new("objdump").args(["-d", "--no-show-raw-insn", "-M", "intel"]).arg(library))?;
    let mut text = String::new();
    for (name, shown) in FUNCTIONS {
        let at = listing::address(&names, name).ok_or_else(|| format!("the library exports no {name}"))?;
        let function = listing::function(&code, at);
        if function.is_empty() {
            return Err(format!("objdump shows no code of {name} at {at:x}"));
        }
        let straight = listing::straight(&function);
        text += &format!("\n{shown}: {straight} instructions on the straight path, {} in all\n", function.len());
        text += &listing::text(&function);
    }
    Ok(text)
}

fn output(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let done = command.output().map_err(|e| {
        format!("cannot start {program}: {e}; nm and objdump are in Debian's binutils (scripts/install-test-deps.sh)")
    })?;
    if !done.status.success() {
        return Err(format!("{program} failed ({}):\n{}", done.status, String::from_utf8_lossy(&done.stderr)));
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}
