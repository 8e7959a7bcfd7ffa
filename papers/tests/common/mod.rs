//! `craton`, the library and the lab's programs, for the tests. The library is built once, where
//! `make build` makes it too.

#[path = "../../../crates/cli/tests/common/said.rs"]
mod said;

pub use said::*;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const PAPERS: &str = env!("CARGO_BIN_EXE_craton-papers");

pub fn programs() -> &'static Path {
    Path::new(PAPERS).parent().expect("a program lies in a folder")
}

fn build(arguments: &[&str], target: &Path) {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet"]).args(arguments).arg("--target-dir").arg(target);
    cargo.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    assert!(cargo.status().unwrap().success(), "cargo build {arguments:?}");
}

/// From these sources.
fn built() -> &'static (PathBuf, PathBuf) {
    static BUILT: OnceLock<(PathBuf, PathBuf)> = OnceLock::new();
    BUILT.get_or_init(|| {
        // An outer build that names the library has built `craton`, too.
        if let Some(library) = std::env::var_os("CRATON_LIBRARY") {
            return (programs().join("craton"), library.into());
        }
        let target = programs().parent().expect("a program built by cargo lies in target/PROFILE");
        // `target/papers` is in the allocator's workspace.
        let of_all = if target.ends_with("target/papers") { target.parent().unwrap() } else { target };
        build(&["-p", "craton-cli", "-p", "craton-lab", "--bins"], target);
        build(&["--release", "-p", "craton-preload"], of_all);
        (programs().join("craton"), of_all.join("release/libcraton.so"))
    })
}

/// Clears what would disturb.
pub fn craton<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let (program, library) = built();
    let mut command = Command::new(program);
    command.args(args).env("CRATON_LIBRARY", library);
    for variable in ["LD_PRELOAD", "CRATON_OPTIONS", "CRATON_PEERS"] {
        command.env_remove(variable);
    }
    command
}

/// Removed when dropped.
pub struct Place(PathBuf);

impl Place {
    pub fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// As text.
    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
