//! Standard output of the lab's programs.

use std::io::{ErrorKind, Write};

/// Prints `text`; if that cannot be done, says so on standard error in the name of `program`. A reader that has gone, as
/// behind a pipe, has had enough: that is no failure.
pub fn print(program: &str, text: &str) -> bool {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => {
            eprintln!("{program}: cannot print: {e}");
            false
        }
        _ => true,
    }
}
