//! Whole programs under Craton: shared code of this package's tests.
//!
//! **What.** Builds the library and small C programs, runs a program with the library and a time
//! limit, and determines from the process's numbers whether Craton served it. An exit status proves
//! nothing: a program without the library also exits with 0.
//!
//! ```no_run
//! let output = craton_programs::Program::new("bash").args(["-c", "echo hello"]).preloaded().run();
//! output.assert_success();
//! output.assert_served("bash");
//! assert_eq!(output.stdout, "hello\n");
//! ```
//!
//! **Failure.** Everything panics with the command and its result. A program beyond its time limit
//! is a failure, and its process group is killed.
//!
//! **Not here.** The tests, and timings: the lab measures.

mod build;
mod group;
mod program;
mod running;
mod segment;
mod side;

pub use build::{cc, cxx, library, static_library, workspace};
pub use group::Group;
pub use program::{Output, Program};
pub use running::Running;
pub use segment::{Stats, live_segment};
pub use side::side_by_side;

use std::env;
use std::path::Path;

/// Whether a program that a test needs is missing. If so, this panics with the name of its Debian
/// package, unless `CRATON_SKIP_MISSING=1`: then it prints that the test was skipped, and the
/// caller returns.
///
/// `program` is a name to look up in `PATH`, or a path.
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
