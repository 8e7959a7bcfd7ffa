//! The page of statistics in a file of a `stats_dir`, or in memory
//! (`craton_malloc::observe::segment`). A release appends numbers; older ones are 0.

use crate::profile::Profile;
use crate::reader::{text_in, u32_in, word_in};
use craton_tables::counters::PROCESS;
use craton_tables::options::{Choice, OPTIONS};
use serde::Serialize;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

const MAGIC: u64 = u64::from_le_bytes(*b"\0CRATON1");
const VERSION: u64 = 1;
const REST_AT: usize = 1024;
const CLASS: usize = 16;
const VALUE: usize = 36;
const CLASSES_AT: usize = REST_AT + 48;
const EXITED: u64 = 2;
pub const PAGE: usize = 4096;

/// As last published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ClassShare {
    pub object_bytes: u64,
    pub slabs: u64,
    pub memory_bytes: u64,
    /// With the program, or in caches.
    pub objects_out: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    pub pid: u32,
    pub exe: String,
    /// By the monotonic clock, when the file was made.
    pub since_ns: u64,
    pub has_exited: bool,
    /// Of a `stats_dir`.
    file: Option<PathBuf>,
    numbers: Vec<u64>,
    pub classes: Vec<ClassShare>,
    /// As set; a long value is cut.
    pub options: Vec<(&'static str, String)>,
}

impl Published {
    /// # Errors
    /// No such page, or another version.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() < PAGE || word_in(bytes, 0) != MAGIC {
            return Err(
                "no page of Craton's statistics, as `craton run -o stats_dir=FOLDER -- CMD` keeps them".to_owned()
            );
        }
        let version = word_in(bytes, 8);
        if version != VERSION {
            return Err(format!(
                "statistics of version {version}, and this program reads version {VERSION}; use the `craton` that came with \
                 that library"
            ));
        }
        let word = |i: usize| word_in(bytes, REST_AT + 8 * i);
        let (count, options) = (u32_in(bytes, REST_AT + 40) as usize, u32_in(bytes, REST_AT + 44) as usize);
        let count = count.min((PAGE - CLASSES_AT) / CLASS);
        let options_at = CLASSES_AT + count * CLASS;
        let class = |i: usize| {
            let number = |field: usize| u64::from(u32_in(bytes, CLASSES_AT + i * CLASS + 4 * field));
            let slabs = number(2);
            ClassShare { object_bytes: number(0), slabs, memory_bytes: number(1) * slabs, objects_out: number(3) }
        };
        let option = |(i, row): (usize, &Choice)| {
            let value = bytes.get(options_at + i * VALUE..)?.get(..VALUE)?;
            Some((row.key, text_in(value))).filter(|(_, value)| !value.is_empty())
        };
        // Another release's options are other ones.
        let is_known = options == OPTIONS.len();
        Ok(Self {
            pid: word_in(bytes, 16) as u32,
            exe: text_in(&bytes[REST_AT + 24..REST_AT + 40]),
            since_ns: word(2),
            has_exited: word(1) == EXITED,
            file: None,
            numbers: (0..PROCESS.len()).map(|i| word_in(bytes, 16 + 8 * i)).collect(),
            classes: (0..count).map(class).filter(|class| class.slabs > 0).collect(),
            options: OPTIONS.iter().enumerate().filter(|_| is_known).filter_map(option).collect(),
        })
    }

    /// # Errors
    /// As [`Published::parse`], or the system's.
    pub fn read(file: &Path) -> Result<Self, String> {
        let mut bytes = Vec::new();
        let named = |why: String| format!("{}: {why}", file.display());
        // Opening a pipe would wait.
        if std::fs::metadata(file).is_ok_and(|there| !there.is_file()) {
            return Err(named("not a file".to_owned()));
        }
        let read = File::open(file).and_then(|file| file.take(PAGE as u64).read_to_end(&mut bytes));
        read.map_err(|e| named(e.to_string()))?;
        let page = Self::parse(&bytes).map_err(named)?;
        Ok(Self { file: Some(file.to_owned()), ..page })
    }

    /// The last copy of the heap profile beside its file. `None` also if it is damaged.
    pub fn profile(&self) -> Option<Profile> {
        let path = self.file.as_ref()?.with_extension("profile");
        std::fs::metadata(&path).ok().filter(std::fs::Metadata::is_file)?;
        Profile::parse(&path.display().to_string(), &std::fs::read(&path).ok()?).ok()
    }

    /// By their names.
    pub fn files(folder: &Path) -> impl Iterator<Item = PathBuf> {
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        files.filter(|path| path.extension().is_some_and(|end| end == "stats"))
    }

    /// Every program whose page is there, also one that its process has left by `exec`.
    pub fn all_in_folder(folder: &Path) -> Vec<Self> {
        Self::files(folder).filter_map(|path| Self::read(&path).ok()).collect()
    }

    /// Processes that have not ended by `exit`, the eldest first; of several by one process, the
    /// last.
    pub fn in_folder(folder: &Path) -> Vec<Self> {
        let mut all = Self::all_in_folder(folder);
        all.retain(|p| !p.has_exited);
        all.sort_by_key(|p| (p.pid, std::cmp::Reverse(p.since_ns)));
        all.dedup_by_key(|p| p.pid);
        all.sort_by_key(|p| p.since_ns);
        all
    }

    pub fn numbers(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        PROCESS.iter().map(|counter| counter.name).zip(self.numbers.iter().copied())
    }

    /// 0 for an unknown name.
    pub fn number(&self, name: &str) -> u64 {
        self.numbers().find(|(key, _)| *key == name).map_or(0, |(_, value)| value)
    }

    pub fn heap_bytes(&self) -> u64 {
        self.number("heap_in_use_bytes") + self.number("huge_bytes")
    }
}

#[cfg(test)]
mod tests;
