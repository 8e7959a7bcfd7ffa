//! Asks a running process for another setting.
//!
//! **What.** Leaves a request in the library's mailbox and waits for the answer; the library looks there in its slow requests, and each second
//! where it has a thread of its own. The process is not stopped: to have one of its threads call the library would need to know that this
//! thread holds no lock and is in no handler of a signal, which nobody outside can.
//!
//! **State.** As `craton_malloc::mailbox` says: the request's text is written before its number, and the answer's number is read before its text.
//!
//! **Failure.** The process says what is wrong with the request; or it does not answer, and the request is taken back.

use crate::live::Live;
use crate::memory::Memory;
use crate::reader::Reader;
use crate::table::Table;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Between two looks at the answer.
const LOOK: Duration = Duration::from_millis(5);
/// For how long a process that has taken the request is waited for beyond that: what it does may take it so long.
const LONGER: Duration = Duration::from_secs(5);

/// The mailbox of a process.
struct Mailbox {
    process: Live,
    at: u64,
    most: usize,
    places: [u64; 7],
}

const ASKED: usize = 0;
const TAKEN: usize = 1;
const ANSWERED: usize = 2;
const REQUEST_LEN: usize = 3;
const ANSWER_LEN: usize = 4;
const REQUEST: usize = 5;
const ANSWER: usize = 6;
const NAMES: [&str; 7] = ["asked", "taken", "answered", "request.len", "answer.len", "request", "answer"];

impl Mailbox {
    fn of(pid: u32) -> Result<Self, String> {
        let process = Live::running(pid)?;
        let table = Table::find(&Reader::new(&process))?;
        let mut places = [0; NAMES.len()];
        for (place, name) in places.iter_mut().zip(NAMES) {
            *place = table.get(&format!("mailbox.{name}"))?;
        }
        let (at, most) = (table.get("mailbox")?, table.get("mailbox.text.most")? as usize);
        Ok(Self { process, at, most, places })
    }

    fn bytes(&self, place: usize, len: usize) -> Result<Vec<u8>, String> {
        let mut bytes = vec![0; len];
        match self.process.read(self.at + self.places[place], &mut bytes) == len {
            true => Ok(bytes),
            false => Err(format!("{} has ended", self.process.name())),
        }
    }

    fn number(&self, place: usize) -> Result<u32, String> {
        let bytes = self.bytes(place, 4)?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    fn write(&self, place: usize, bytes: &[u8]) -> Result<(), String> {
        self.process.write(self.at + self.places[place], bytes)
    }

    /// Waits until something is so; says whether it became so in time.
    fn wait(&self, time: Duration, is_so: impl Fn(&Self) -> Result<bool, String>) -> Result<bool, String> {
        let since = Instant::now();
        loop {
            if is_so(self)? {
                return Ok(true);
            }
            if since.elapsed() >= time {
                return Ok(false);
            }
            sleep(LOOK);
        }
    }
}

/// Has a process set `key=value`, and waits for its answer for no longer than `time`. The inner error is the process's own: what is wrong with
/// the key or the value.
///
/// # Errors
/// There is no such process, it may not be written, it does not run on Craton, or it does not answer.
pub fn set(pid: u32, setting: &str, time: Duration) -> Result<Result<(), String>, String> {
    let mailbox = Mailbox::of(pid)?;
    if setting.len() > mailbox.most {
        return Err(format!(
            "the setting has {} bytes, and a request takes {} at the most",
            setting.len(),
            mailbox.most
        ));
    }
    let is_free = |m: &Mailbox| Ok(m.number(ASKED)? == 0 && m.number(TAKEN)? == m.number(ANSWERED)?);
    if !mailbox.wait(time, is_free)? {
        // Whoever asked is no more there, or waits as we do; the process has made no request meanwhile.
        mailbox.write(ASKED, &0u32.to_le_bytes())?;
        return Err(format!(
            "process {pid}: another request has been waiting there, and was taken back now; ask again"
        ));
    }
    let number = mailbox.number(ANSWERED)?.wrapping_add(1).max(1);
    mailbox.write(REQUEST, setting.as_bytes())?;
    mailbox.write(REQUEST_LEN, &(setting.len() as u32).to_le_bytes())?;
    mailbox.write(ASKED, &number.to_le_bytes())?;
    let is_answered = |m: &Mailbox| Ok(m.number(ANSWERED)? == number);
    let mut answered = mailbox.wait(time, is_answered)?;
    if !answered {
        mailbox.write(ASKED, &0u32.to_le_bytes())?;
        answered = mailbox.number(TAKEN)? == number && mailbox.wait(LONGER, is_answered)?;
    }
    if !answered {
        let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
        return Err(format!(
            "process {pid} has not answered in {} s, and the request was taken back: it sleeps, or asks for no memory that its caches do not have; \
             try again while it works, wait longer by --wait, or have a debugger call the library while it sleeps: \
             gdb -p {pid} -batch -ex 'call (int)craton_option_set(\"{key}\", \"{value}\")'",
            time.as_secs_f64()
        ));
    }
    let len = mailbox.number(ANSWER_LEN)? as usize;
    let answer = mailbox.bytes(ANSWER, len.min(mailbox.most))?;
    // The library says so where it goes on with others.
    let answer = String::from_utf8_lossy(&answer).trim_end_matches("; ignored").to_owned();
    Ok(if answer.is_empty() { Ok(()) } else { Err(answer) })
}
