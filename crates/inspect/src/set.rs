//! Asks a running process for other settings.
//!
//! **What.** Leaves a request in the library's mailbox and waits for the answer; the library looks there in its slow requests, in frees past its
//! threads' caches, and in the thread of its own where it has one, which is woken. So that a process comes by whose threads' caches serve all that it asks for,
//! the number of pages that each of these knows of is overwritten by 0 while we wait: the thread's next free is then a slow one, and writes it back.
//! Arrays of object caches lose their owner, so that the next request for an object is a slow one.
//! The process is not stopped, but for that one thread, for a moment: to have one of its threads call the library would need to know that this thread holds no lock and is in no
//! handler of a signal, which nobody outside can.
//!
//! **State.** As `craton_malloc::observe::mailbox` says: the request's text is written before its number, and the answer's number is read before its text.
//!
//! **Failure.** The process says what is wrong with a setting. One that asks for no memory does not answer; the request stays with it, for its next
//! slow request, and what is asked for meanwhile is added to it.

use crate::caches::MOST_AREAS;
use crate::live::{Live, is_stopped, is_zombie};
use crate::memory::Memory;
use crate::reader::Reader;
use crate::table::Table;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Between two looks at the answer.
const LOOK: Duration = Duration::from_millis(5);
/// Looks between two times that threads' caches are made to fail.
const FAIL_EVERY: u32 = 10;
/// And between two times that the library's own thread is woken, if there is one, by its name.
const WAKE_EVERY: u32 = 100;
const THREAD: &str = "craton";
/// For how long a process that has taken the request is waited for beyond that: what it does may take it so long.
const LONGER: Duration = Duration::from_secs(5);
/// Caches that are made to fail, at most: more are no list of ours.
const MOST_CACHES: usize = 1 << 20;

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The process has set the settings, but for those that it refused.
    Done(Vec<Refused>),
    /// The process has not looked yet. It will set them in its next slow request.
    Waits {
        /// It stands still, by a signal or under a debugger.
        stopped: bool,
    },
}

/// A setting that a process has refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The setting, `key=value`.
    pub setting: String,
    /// What is wrong with it.
    pub why: String,
    /// It waited there: an earlier request asked for it.
    pub waited: bool,
}

/// The mailbox of a process.
struct Mailbox {
    process: Live,
    at: u64,
    most: usize,
    places: [u64; NAMES.len()],
    /// Where the list of threads' caches begins, and in each cache the next one, whether a thread has it, and its number of pages.
    caches: [u64; 4],
    /// Where a byte ends the sleep of the library's own thread, once its system call begins anew.
    nudge: u64,
    arrays: Arrays,
}

/// Where the arrays of object caches lie.
struct Arrays {
    /// Of the words that say where the first area is, how many there are, and how many caches.
    words: [u64; 3],
    area_bytes: u64,
    array_bytes: u64,
    owner: u64,
}

impl Arrays {
    fn of(table: &Table) -> Result<Self, String> {
        let get = |name: &str| table.get(&format!("caches.{name}"));
        let caches = table.get("caches")?;
        Ok(Self {
            words: [caches + get("areas")?, caches + get("areas.end")?, caches + get("used")?],
            area_bytes: get("area.bytes")?,
            array_bytes: get("array.bytes")?,
            owner: get("array.owner")?,
        })
    }

    /// Tells `each` of the owners of all arrays that have one.
    fn each_owner(&self, reader: &Reader<'_>, mut each: impl FnMut(u64) -> Result<(), String>) -> Result<(), String> {
        let [first, end, used] = self.words;
        let (first, end, used) = (reader.word(first)?, reader.word(end)?, reader.word(used)?);
        if first <= 1 || end > MOST_AREAS || used > self.area_bytes / self.array_bytes.max(1) {
            return Ok(());
        }
        for area in 0..end {
            for cache in 0..used {
                let owner = first + area * self.area_bytes + cache * self.array_bytes + self.owner;
                // What nobody has touched may not be there, and must not be written.
                if reader.word(owner).unwrap_or(0) != 0 {
                    each(owner)?;
                }
            }
        }
        Ok(())
    }
}

const ASKED: usize = 0;
const TAKEN: usize = 1;
const ANSWERED: usize = 2;
const LEFT: usize = 3;
const REQUEST_LEN: usize = 4;
const ANSWER_LEN: usize = 5;
const REQUEST: usize = 6;
const ANSWER: usize = 7;
const NAMES: [&str; 8] = ["asked", "taken", "answered", "left", "request.len", "answer.len", "request", "answer"];

impl Mailbox {
    fn of(pid: u32) -> Result<Self, String> {
        let process = Live::running(pid)?;
        // What cannot be found in a process that ends meanwhile is no sign that it had no table.
        let table = Table::find(&Reader::new(&process))
            .map_err(|why| if is_zombie(pid, pid) { format!("process {pid} has ended") } else { why })?;
        let mut places = [0; NAMES.len()];
        for (place, name) in places.iter_mut().zip(NAMES) {
            *place = table.get(&format!("mailbox.{name}"))?;
        }
        let (at, most) = (table.get("mailbox")?, table.get("mailbox.text.most")? as usize);
        let mut caches = [0; 4];
        for (place, name) in caches.iter_mut().zip(["first", "next", "taken", "pages"]) {
            *place = table.get(&format!("thread.{name}"))?;
        }
        let nudge = table.get("mailbox.nudge")?;
        let arrays = Arrays::of(&table)?;
        Ok(Self { process, at, most, places, caches, nudge, arrays })
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

    /// Puts a request there; without a text, the one that lies there.
    fn ask(&self, text: Option<&[u8]>, number: u32) -> Result<(), String> {
        if let Some(text) = text {
            self.write(REQUEST, text)?;
            self.write(REQUEST_LEN, &(text.len() as u32).to_le_bytes())?;
        }
        self.write(ASKED, &number.to_le_bytes())
    }

    /// Takes a request back that nobody has taken yet; returns its text, which is empty if there was none, and the last number that was asked with.
    fn take_back(&self) -> Result<(Vec<u8>, u32), String> {
        let asked = self.number(ASKED)?;
        if asked == 0 {
            return Ok((Vec::new(), self.number(ANSWERED)?));
        }
        self.write(ASKED, &0u32.to_le_bytes())?;
        // Whoever was faster says so at once, and answers.
        sleep(LOOK);
        if self.number(TAKEN)? == asked {
            self.wait(LONGER, |m| Ok(m.number(ANSWERED)? == asked))?;
            return Ok((Vec::new(), asked));
        }
        let len = (self.number(REQUEST_LEN)? as usize).min(self.most);
        Ok((self.bytes(REQUEST, len)?, asked))
    }

    /// Has the next free of each thread with a cache of its own be a slow one.
    fn fail_caches(&self) -> Result<(), String> {
        let [first, next, taken, pages] = self.caches;
        let reader = Reader::new(&self.process);
        let mut at = reader.word(first)?;
        for _ in 0..MOST_CACHES {
            if at == 0 {
                break;
            }
            // A cache stays where it is for ever; who has just got one writes the number later than we do.
            if reader.bytes(at + taken, 1)? == [1] {
                self.process.write(at + pages, &[0; 8])?;
            }
            at = reader.word(at + next)?;
        }
        Ok(())
    }

    /// Has the next request for an object of each cache be a slow one, which makes the array the cache's again.
    fn fail_arrays(&self) -> Result<(), String> {
        let reader = Reader::new(&self.process);
        self.arrays.each_owner(&reader, |owner| self.process.write(owner, &[0; 8]))
    }

    /// Waits until something is so, while threads come by; says whether it became so in time.
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
                self.process.write(self.nudge, &[1])?;
                self.process.interrupt(THREAD);
            }
            sleep(LOOK);
        }
        Ok(false)
    }
}

/// Has a process set each of `settings`, `key=value`, and waits for its answer for no longer than `time`.
///
/// # Errors
/// There is no such process, it may not be written, it does not run on Craton, or it does not end what it is at.
pub fn set(pid: u32, settings: &[String], time: Duration) -> Result<Answer, String> {
    let mailbox = Mailbox::of(pid)?;
    if !mailbox.wait(time, |m| Ok(m.number(TAKEN)? == m.number(ANSWERED)?))? {
        return Err(format!(
            "process {pid} is at another request and has not answered it in {} s; try again",
            time.as_secs_f64()
        ));
    }
    let (waiting, last) = mailbox.take_back()?;
    let waited = if waiting.is_empty() { 0 } else { waiting.split(|b| *b == 0).count() };
    let mut text = waiting;
    for setting in settings {
        if !text.is_empty() {
            text.push(0);
        }
        text.extend_from_slice(setting.as_bytes());
    }
    if text.len() > mailbox.most {
        // What waited goes on to.
        mailbox.ask(None, last)?;
        return Err(format!(
            "process {pid}: the settings have {} bytes with those that wait there already, and a request takes {} at the most",
            text.len(),
            mailbox.most
        ));
    }
    let number = last.wrapping_add(1).max(1);
    mailbox.ask(Some(&text), number)?;
    // Who has added to our request asks with a later number.
    let is_answered = |m: &Mailbox| Ok((m.number(ANSWERED)?.wrapping_sub(number) as i32) >= 0);
    let mut answered = mailbox.wait(time, is_answered)?;
    if !answered {
        mailbox.write(LEFT, &number.to_le_bytes())?;
        // Whoever has taken it meanwhile may not know that nobody waits.
        answered = mailbox.number(ASKED)? != number && mailbox.wait(LONGER, is_answered)?;
    }
    if !answered {
        return Ok(Answer::Waits { stopped: is_stopped(pid) });
    }
    let len = mailbox.number(ANSWER_LEN)? as usize;
    Ok(Answer::Done(refused(&mailbox.bytes(ANSWER, len.min(mailbox.most))?, &text, waited)))
}

/// What an answer refuses of a request, whose first `waited` settings are of earlier ones.
fn refused(answer: &[u8], request: &[u8], waited: usize) -> Vec<Refused> {
    let each = answer.split(|b| *b == 0).filter_map(|one| {
        let text = String::from_utf8_lossy(one);
        let (number, why) = text.split_once(':')?;
        let number = number.parse().ok()?;
        let setting = String::from_utf8_lossy(request.split(|b| *b == 0).nth(number)?).into_owned();
        // The library says so where it goes on with others.
        let why = why.trim_end_matches("; ignored").to_owned();
        Some(Refused { setting, why, waited: number < waited })
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_names_settings_by_their_place_in_the_request() {
        let answer = b"0:no such key; ignored\x002:bad value (0: none); ignored\x003:of nothing that was asked for";
        let refused_one =
            |setting: &str, why: &str, waited| Refused { setting: setting.into(), why: why.into(), waited };
        assert_eq!(
            refused(answer, b"x=1\0y=2\0z=3", 1),
            [refused_one("x=1", "no such key", true), refused_one("z=3", "bad value (0: none)", false)]
        );
        assert_eq!(refused(b"", b"x=1", 0), []);
    }
}
