//! The terminal while `craton top` has it.

use crate::terminal::say;
use rustix::termios::{OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

pub enum Key {
    Quit,
    Sort,
    Reverse,
    Pause,
    Who,
    None,
}

pub struct Terminal {
    before: Termios,
}

const WITHOUT_SIZE: (usize, usize) = (80, 24);
/// The window may change meanwhile.
const STEP: Duration = Duration::from_millis(200);

impl Terminal {
    pub fn open() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        // A read returns after a tenth of a second.
        raw.special_codes[SpecialCodeIndex::VMIN] = 0;
        raw.special_codes[SpecialCodeIndex::VTIME] = 1;
        tcsetattr(io::stdin(), OptionalActions::Flush, &raw)?;
        let this = Self { before };
        // The other screen, without a cursor.
        put("\x1b[?1049h\x1b[?25l");
        Ok(this)
    }

    pub fn draw(&self, lines: &[String]) {
        let text: Vec<String> = lines.iter().map(|line| format!("{line}\x1b[K")).collect();
        put(&format!("\x1b[H{}\x1b[J", text.join("\r\n")));
    }

    /// Until `end` or for a moment.
    pub fn key(&self, end: Instant) -> Key {
        let end = end.min(Instant::now() + STEP);
        let mut byte = [0];
        loop {
            match io::stdin().lock().read(&mut byte) {
                Ok(1..) => match byte[0] {
                    // Ctrl-C and Ctrl-D.
                    b'q' | b'Q' | 3 | 4 => return Key::Quit,
                    b's' => return Key::Sort,
                    b'r' => return Key::Reverse,
                    b' ' => return Key::Pause,
                    b'w' => return Key::Who,
                    _ => (),
                },
                Err(e) if e.kind() != io::ErrorKind::Interrupted => return Key::Quit,
                _ => (),
            }
            if Instant::now() >= end {
                return Key::None;
            }
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        put("\x1b[?25h\x1b[?1049l");
        if let Err(e) = tcsetattr(io::stdin(), OptionalActions::Flush, &self.before) {
            say(&format!("craton: the terminal's settings cannot be restored: {e}; `reset` does that\n"));
        }
    }
}

fn put(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

pub fn size() -> (usize, usize) {
    let size = tcgetwinsize(io::stdout()).ok().filter(|size| size.ws_col > 0 && size.ws_row > 0);
    size.map_or(WITHOUT_SIZE, |size| (size.ws_col.into(), size.ws_row.into()))
}
