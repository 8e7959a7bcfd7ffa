//! The file of the profile: the option `profile_file`. Written at the exit, and when
//! [`Due`](crate::profile::Profile::due) at a sample.
//!
//! **Failure.** A line on standard error.

use crate::observe::text::Text;
use crate::observe::trace::PATH_MAX;
use crate::statics::{PROFILE, PROFILE_FILE};
use crate::thread::nested;
use craton_os::{Line, OutFile, file_map, process};

/// `false`: too long.
pub(crate) fn set_path(path: &[u8]) -> bool {
    // A number has at most 20 digits.
    let numbers = path.windows(2).filter(|two| is_number(two)).count();
    if path.len() + 20 * numbers >= PATH_MAX || path.contains(&0) {
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

/// The path, with the process's and the file's number; `None` without the option.
fn path() -> Option<Line> {
    let file = PROFILE_FILE.lock();
    let path = &file.0[..file.1];
    let (mut text, mut at) = (Line::new(), 0);
    while at < path.len() {
        text = match path[at..].get(..2) {
            Some(b"%p") => text.number(process::id().into()),
            Some(b"%n") => text.number(PROFILE.due.count_file()),
            _ => text.bytes(&path[at..=at]),
        };
        at += if is_number(&path[at..]) { 2 } else { 1 };
    }
    (!path.is_empty()).then_some(text)
}

fn is_number(path: &[u8]) -> bool {
    path.starts_with(b"%p") || path.starts_with(b"%n")
}

pub(crate) fn at_exit() {
    if PROFILE_FILE.lock().1 > 0 {
        nested::within(write);
    }
}

/// Inside a request.
pub(crate) fn write() {
    let Some(path) = path() else { return };
    let mut ended = [0; PATH_MAX];
    let len = path.as_bytes().len();
    ended[..len].copy_from_slice(path.as_bytes());
    if let Err(error) = write_to(&ended[..=len]) {
        let why = file_map::reason(error).unwrap_or("an error of the system");
        Line::new().text("craton: profile_file: cannot write ").bytes(&ended[..len]).text(": ").text(why).print();
    }
}

fn write_to(path: &[u8]) -> Result<(), i32> {
    // Under the lock, so that two threads do not write one file.
    let written = PROFILE.tables.with(true, |all| {
        let file = OutFile::create(path)?;
        all.header.maps_bytes = 0;
        all.parts().iter().try_for_each(|part| file.write(part))?;
        all.header.maps_bytes = file.write_maps()?;
        // Last: a file that ends early has no length of mappings.
        file.write_at(all.parts()[0], 0)
    });
    written.unwrap_or(Err(process::ENOMEM))
}
