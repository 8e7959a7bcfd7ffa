//! The file of the profile, written at the exit: the option `profile_file`.
//!
//! **Failure.** A line on standard error.

use crate::observe::text::Text;
use crate::observe::trace::PATH_MAX;
use crate::statics::{PROFILE, PROFILE_FILE};
use crate::thread::nested;
use craton_os::{Line, OutFile, file_map, process};

/// `false`: too long.
pub(crate) fn set_path(path: &[u8]) -> bool {
    // A number has at most ten digits.
    let pids = path.windows(2).filter(|two| *two == b"%p").count();
    if path.len() + 10 * pids >= PATH_MAX || path.contains(&0) {
        return false;
    }
    let mut file = PROFILE_FILE.lock();
    file.0[..path.len()].copy_from_slice(path);
    file.1 = path.len();
    true
}

pub(crate) fn show_path(into: &mut Text<'_>) {
    let file = PROFILE_FILE.lock();
    into.bytes(&file.0[..file.1]);
}

/// The path with the process's number; `None` without the option.
fn path() -> Option<Line> {
    let file = PROFILE_FILE.lock();
    let path = &file.0[..file.1];
    let (mut text, mut at) = (Line::new(), 0);
    while at < path.len() {
        let is_pid = path[at..].starts_with(b"%p");
        text = if is_pid { text.number(process::id().into()) } else { text.bytes(&path[at..=at]) };
        at += if is_pid { 2 } else { 1 };
    }
    (!path.is_empty()).then_some(text)
}

pub(crate) fn at_exit() {
    let Some(path) = path() else { return };
    let mut ended = [0; PATH_MAX];
    let len = path.as_bytes().len();
    ended[..len].copy_from_slice(path.as_bytes());
    if let Err(error) = nested::within(|| write(&ended[..=len])) {
        let why = file_map::reason(error).unwrap_or("an error of the system");
        Line::new().text("craton: profile_file: cannot write ").bytes(&ended[..len]).text(": ").text(why).print();
    }
}

fn write(path: &[u8]) -> Result<(), i32> {
    let file = OutFile::create(path)?;
    let written = PROFILE.tables.with(true, |all| {
        all.header.maps_bytes = 0;
        all.parts().iter().try_for_each(|part| file.write(part))?;
        all.header.maps_bytes = file.write_maps()?;
        // Last: a file that ends early has no length of mappings.
        file.write_at(all.parts()[0], 0)
    });
    written.unwrap_or(Err(process::ENOMEM))
}
