use std::io::{ErrorKind, Write};

/// A closed pipe is no failure.
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
