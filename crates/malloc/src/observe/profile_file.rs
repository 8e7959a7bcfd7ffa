//! The file of the profile: the option `profile_file`. Written at the exit, by a call, and when
//! [`Due`](crate::profile::Profile::due) at a sample. It appears whole, by a rename. A copy in the
//! folder `stats_dir` outlives a process that is killed ([`crate::observe::shared`]).
//!
//! Under `debug=audit` it has each live buffer, too, by the site of its allocation.
//!
//! **Failure.** A line on standard error, or `errno`; an earlier file stays.

use crate::observe::numbered_path;
use crate::profile::tables::{Count, SITE_BYTES, live_site};
use crate::statics::{KIT, PROFILE, PROFILE_FILE, SEGMENT, SHARED};
use crate::thread::nested;
use craton_kit::Sum;
use craton_os::{Line, OutFile, Replacement, file_map, process};

pub(crate) fn at_exit() {
    if PROFILE_FILE.is_set() {
        nested::within(write);
    }
}

/// Inside a request.
pub(crate) fn write() {
    let Some(path) = PROFILE_FILE.named(process::id(), || PROFILE.due.count_file()) else { return };
    if let Err(error) = write_to(path.with_end()) {
        let why = file_map::reason(error).unwrap_or("an error of the system");
        Line::new().text("craton: profile_file: cannot write ").bytes(path.text()).text(": ").text(why).print();
    }
}

/// Beside the statistics of a `stats_dir`. Inside a request. If it fails, an earlier copy stays.
pub(crate) fn keep() {
    let _ = write_to(&SHARED.profile_path(&SEGMENT));
}

/// By a call of the program's; `%p` and `%n` as in the option.
///
/// # Errors
/// `errno`.
pub fn write_by_call(path: &[u8]) -> Result<(), i32> {
    if nested::is_nested() {
        return Err(process::EDEADLK);
    }
    let path = numbered_path::named(path, process::id(), || PROFILE.due.count_file()).ok_or(process::EINVAL)?;
    let saved = process::errno();
    let written = nested::within(|| write_to(path.with_end()));
    process::set_errno(saved);
    written
}

fn write_to(path: &[u8]) -> Result<(), i32> {
    // Before the tables' lock.
    let audited = KIT.audited();
    if audited.is_none() && KIT.is_audited() {
        return Err(process::ENOMEM);
    }
    // Under the lock, so that two threads do not write one file.
    let written = PROFILE.tables.with(true, |all| {
        let new = Replacement::of(path)?;
        let file = new.file();
        file.write(&all.header_of_file(0, Count::default(), 0))?;
        file.write(all.sites())?;
        let mut exact = Exact { file, sites: 0, sum: Count::default(), waiting: [0; AT_ONCE * SITE_BYTES] };
        audited.iter().try_for_each(|audited| audited.each(|frames, sum| exact.add(frames, sum)))?;
        let (sites, sum) = exact.end()?;
        let maps_bytes = file.write_maps()?;
        // Last: a file that ends early has no length of mappings.
        file.write_at(&all.header_of_file(sites, sum, maps_bytes), 0)?;
        new.commit()
    });
    written.unwrap_or(Err(process::ENOMEM))
}

const AT_ONCE: usize = 8;

/// Sites of `debug=audit`, written some at once.
struct Exact<'f> {
    file: &'f OutFile,
    sites: usize,
    sum: Count,
    waiting: [u8; AT_ONCE * SITE_BYTES],
}

impl Exact<'_> {
    fn add(&mut self, frames: &[usize], sum: Sum) -> Result<(), i32> {
        let live = Count { bytes: sum.bytes, objects: sum.objects };
        let from = self.sites % AT_ONCE * SITE_BYTES;
        self.waiting[from..from + SITE_BYTES].copy_from_slice(&live_site(frames, live));
        self.sum.add(live);
        self.sites += 1;
        if self.sites.is_multiple_of(AT_ONCE) { self.file.write(&self.waiting) } else { Ok(()) }
    }

    fn end(self) -> Result<(u64, Count), i32> {
        self.file.write(&self.waiting[..self.sites % AT_ONCE * SITE_BYTES])?;
        Ok((self.sites as u64, self.sum))
    }
}
