//! Whole programs under Craton: the process's numbers prove that Craton served it.
//!
//! ```no_run
//! let output = craton_programs::Program::new("bash").args(["-c", "echo hello"]).preloaded().run();
//! output.assert_success();
//! output.assert_served("bash");
//! assert_eq!(output.stdout, "hello\n");
//! ```
//!
//! **Failure.** Panics with the command and its result.

mod build;
mod group;
mod program;
mod running;
mod segment;
mod side;

pub use build::{cc, cxx, library, pheap_library, static_library, workspace};
pub use group::Group;
pub use program::{Output, Program};
pub use running::Running;
pub use segment::{Stats, live_segment};
pub use side::side_by_side;

use std::env;
use std::path::Path;

/// Panics with the Debian package's name, unless `CRATON_SKIP_MISSING=1`.
pub fn missing(program: &str, package: &str) -> bool {
    let found = if program.contains('/') {
        Path::new(program).exists()
    } else {
        env::var_os("PATH").is_some_and(|path| env::split_paths(&path).any(|dir| dir.join(program).is_file()))
    };
    if found {
        return false;
    }
    assert!(
        env::var_os("CRATON_SKIP_MISSING").is_some_and(|v| v == "1"),
        "{program} is not here: install the Debian package {package} (`make test` does), or set CRATON_SKIP_MISSING=1"
    );
    eprintln!("skipped: {program} of the Debian package {package} is not here");
    true
}
