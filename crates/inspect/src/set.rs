//! Asks a running process to change options.
//!
//! **What.** Writes a request into the library's mailbox (`craton_malloc::observe::mailbox`), wakes
//! the background thread, and drives other threads into slow paths: each thread cache's count of
//! known pages becomes 0, which the next free restores, and arrays of object caches lose their
//! owner. A thread made to call the library might hold locks.

use crate::caches::MOST_AREAS;
use crate::live::{Live, is_stopped, is_zombie};
use crate::memory::Memory;
use crate::reader::{Reader, u32_in};
use crate::table::Table;
use std::thread::sleep;
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(5);
const FAIL_EVERY: u32 = 10;
const WAKE_EVERY: u32 = 100;
const THREAD: &str = "craton";
/// For an answer once the request is read.
const LONGER: Duration = Duration::from_secs(5);
const MOST_CACHES: usize = 1 << 20;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// But for those refused.
    Done(Vec<Refused>),
    /// For the process's next slow request.
    Waits { stopped: bool },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// `key=value`.
    pub setting: String,
    pub why: String,
    pub waited: bool,
}

struct Mailbox {
    process: Live,
    table: Table,
    at: u64,
    most: usize,
}

/// A library of another release lacks some; then nothing is written.
const NAMES: &str = "mailbox.asked mailbox.taken mailbox.answered mailbox.left mailbox.request.len mailbox.answer.len \
    mailbox.request mailbox.answer mailbox.nudge thread.first thread.next thread.taken thread.pages caches caches.areas \
    caches.areas.end caches.used caches.area.bytes caches.array.bytes caches.array.owner";

impl Mailbox {
    fn of(pid: u32) -> Result<Self, String> {
        let process = Live::running(pid)?;
        // A process that ends meanwhile seems to have no table.
        let table = Table::find(&Reader::new(&process))
            .map_err(|why| if is_zombie(pid, pid) { format!("process {pid} has ended") } else { why })?;
        NAMES.split(' ').try_for_each(|name| table.get(name).map(drop))?;
        let (at, most) = (table.get("mailbox")?, table.get("mailbox.text.most")? as usize);
        Ok(Self { process, table, at, most })
    }

    fn place(&self, name: &str) -> Result<u64, String> {
        Ok(self.at + self.table.get(&format!("mailbox.{name}"))?)
    }

    fn bytes(&self, name: &str, len: usize) -> Result<Vec<u8>, String> {
        let mut bytes = vec![0; len];
        match self.process.read(self.place(name)?, &mut bytes) == len {
            true => Ok(bytes),
            false => Err(format!("{} has ended", self.process.name())),
        }
    }

    fn number(&self, name: &str) -> Result<u32, String> {
        Ok(u32_in(&self.bytes(name, 4)?, 0))
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), String> {
        self.process.write(self.place(name)?, bytes)
    }

    /// Without a text the request is repeated.
    fn request(&self, text: Option<&[u8]>, number: u32) -> Result<(), String> {
        if let Some(text) = text {
            self.write("request", text)?;
            self.write("request.len", &(text.len() as u32).to_le_bytes())?;
        }
        self.write("asked", &number.to_le_bytes())
    }

    /// Returns the text unless a thread read it, and the last number used.
    fn withdraw(&self) -> Result<(Vec<u8>, u32), String> {
        let asked = self.number("asked")?;
        if asked == 0 {
            return Ok((Vec::new(), self.number("answered")?));
        }
        self.write("asked", &0u32.to_le_bytes())?;
        // A thread that was faster answers at once.
        sleep(POLL);
        if self.number("taken")? == asked {
            self.wait(LONGER, |m| Ok(m.number("answered")? == asked))?;
            return Ok((Vec::new(), asked));
        }
        let len = (self.number("request.len")? as usize).min(self.most);
        Ok((self.bytes("request", len)?, asked))
    }

    fn fail_caches(&self) -> Result<(), String> {
        let get = |name: &str| self.table.get(name);
        let reader = Reader::new(&self.process);
        let mut at = reader.word(get("thread.first")?)?;
        for _ in 0..MOST_CACHES {
            if at == 0 {
                break;
            }
            // A cache never moves; a thread that just got one writes its count after us.
            if reader.bytes(at + get("thread.taken")?, 1)? == [1] {
                self.process.write(at + get("thread.pages")?, &[0; 8])?;
            }
            at = reader.word(at + get("thread.next")?)?;
        }
        Ok(())
    }

    /// The next request restores the owner.
    fn fail_arrays(&self) -> Result<(), String> {
        let get = |name: &str| self.table.get(&format!("caches.{name}"));
        let (reader, caches) = (Reader::new(&self.process), self.table.get("caches")?);
        let word = |name: &str| reader.word(caches + get(name)?);
        let (first, end, used) = (word("areas")?, word("areas.end")?, word("used")?);
        let (area_bytes, array_bytes, owner) = (get("area.bytes")?, get("array.bytes")?, get("array.owner")?);
        if first <= 1 || end > MOST_AREAS || used > area_bytes / array_bytes.max(1) {
            return Ok(());
        }
        let arrays = (0..end).flat_map(|area| (0..used).map(move |cache| (area, cache)));
        for at in arrays.map(|(area, cache)| first + area * area_bytes + cache * array_bytes + owner) {
            // Untouched memory must not be written.
            if reader.word(at).unwrap_or(0) != 0 {
                self.process.write(at, &[0; 8])?;
            }
        }
        Ok(())
    }

    /// `false`: not in time.
    fn wait(&self, time: Duration, is_so: impl Fn(&Self) -> Result<bool, String>) -> Result<bool, String> {
        let since = Instant::now();
        for look in 0u32.. {
            if is_so(self)? {
                return Ok(true);
            }
            if since.elapsed() >= time {
                break;
            }
            if look.is_multiple_of(FAIL_EVERY) {
                self.fail_caches()?;
            }
            if look.is_multiple_of(WAKE_EVERY) {
                self.fail_arrays()?;
                self.process.write(self.table.get("mailbox.nudge")?, &[1])?;
                self.process.interrupt(THREAD);
            }
            sleep(POLL);
        }
        Ok(false)
    }
}

/// # Errors
/// No such process, no permission, not on Craton, or an earlier request is in progress.
pub fn set(pid: u32, settings: &[String], time: Duration) -> Result<Answer, String> {
    let mailbox = Mailbox::of(pid)?;
    if !mailbox.wait(time, |m| Ok(m.number("taken")? == m.number("answered")?))? {
        return Err(format!(
            "process {pid} is at another request and has not answered it in {} s; try again",
            time.as_secs_f64()
        ));
    }
    let (waiting, last) = mailbox.withdraw()?;
    let waited = if waiting.is_empty() { 0 } else { waiting.split(|b| *b == 0).count() };
    let mut text = waiting;
    for setting in settings {
        if !text.is_empty() {
            text.push(0);
        }
        text.extend_from_slice(setting.as_bytes());
    }
    if text.len() > mailbox.most {
        mailbox.request(None, last)?;
        return Err(format!(
            "process {pid}: the settings and those of waiting requests have {} bytes; a request holds at most {}",
            text.len(),
            mailbox.most
        ));
    }
    let number = last.wrapping_add(1).max(1);
    mailbox.request(Some(&text), number)?;
    // A process that adds to our request uses a later number.
    let is_answered = |m: &Mailbox| Ok((m.number("answered")?.wrapping_sub(number) as i32) >= 0);
    let mut answered = mailbox.wait(time, is_answered)?;
    if !answered {
        mailbox.write("left", &number.to_le_bytes())?;
        // A thread that has read it may not know that we gave up.
        answered = mailbox.number("asked")? != number && mailbox.wait(LONGER, is_answered)?;
    }
    if !answered {
        return Ok(Answer::Waits { stopped: is_stopped(pid) });
    }
    let len = mailbox.number("answer.len")? as usize;
    Ok(Answer::Done(refused(&mailbox.bytes("answer", len.min(mailbox.most))?, &text, waited)))
}

/// The first `waited` settings are of earlier requests.
fn refused(answer: &[u8], request: &[u8], waited: usize) -> Vec<Refused> {
    let each = answer.split(|b| *b == 0).filter_map(|one| {
        let text = String::from_utf8_lossy(one);
        let (number, why) = text.split_once(':')?;
        let number = number.parse().ok()?;
        let setting = String::from_utf8_lossy(request.split(|b| *b == 0).nth(number)?).into_owned();
        let why = why.trim_end_matches("; ignored").to_owned();
        Some(Refused { setting, why, waited: number < waited })
    });
    each.collect()
}

#[cfg(test)]
mod tests;
