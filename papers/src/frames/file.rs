//! A persistent zone in a file that processes share (LLFree §5.7). Its page, rows and children are
//! in the file, the rest in private memory.
//!
//! **Unsafe.** Makes slices of atomic words of a mapping.

use craton_base::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use craton_frames::{Metadata, PAGE_WORDS, Sizes, Standard};
use craton_lab::arrays::{Arrays, LINE};
use memmap2::{MmapOptions, MmapRaw};
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

const WORD: usize = size_of::<u64>();
const PAGE: usize = 4096;

/// Accessed by atomic operations only.
pub struct Shared(MmapRaw);

impl Shared {
    pub fn create(path: &Path, words: usize) -> Result<Self, String> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path);
        let sized = file.and_then(|file| file.set_len((words * WORD) as u64).map(|()| file));
        sized.and_then(|file| Self::map(&file, words)).map_err(|e| cannot("make", path, &e))
    }

    pub fn open(path: &Path, words: usize) -> Result<Self, String> {
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(|e| cannot("open", path, &e))?;
        let bytes = file.metadata().map_err(|e| cannot("look at", path, &e))?.len();
        if bytes != (words * WORD) as u64 {
            return Err(format!("{} has {bytes} bytes, and {} were expected", path.display(), words * WORD));
        }
        Self::map(&file, words).map_err(|e| cannot("map", path, &e))
    }

    fn map(file: &File, words: usize) -> io::Result<Self> {
        let mapped = Self(MmapOptions::new().len(words * WORD).populate().map_raw(file)?);
        // The first write to a page waits for the file system.
        mapped.words().iter().step_by(PAGE / WORD).for_each(|word| {
            word.fetch_or(0, Relaxed);
        });
        Ok(mapped)
    }

    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: mapped as long as this value; any bits are valid.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), self.0.len() / WORD) }
    }

    /// Used as halves only.
    fn halves(&self, range: Range<usize>) -> &[AtomicU32] {
        let words = &self.words()[range];
        // SAFETY: weaker alignment; any bits are valid.
        unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), 2 * words.len()) }
    }
}

fn cannot(what: &str, path: &Path, why: &io::Error) -> String {
    format!("cannot {what} {}: {why}", path.display())
}

pub struct ZoneFile {
    shared: Shared,
    sizes: Sizes,
    upper: Arrays,
}

impl ZoneFile {
    pub fn create(path: &Path, frames: usize, processors: usize) -> Result<Self, String> {
        let sizes = Sizes::of::<Standard>(frames, processors);
        Ok(Self::over(Shared::create(path, Self::words(&sizes))?, sizes))
    }

    pub fn open(path: &Path, frames: usize, processors: usize) -> Result<Self, String> {
        let sizes = Sizes::of::<Standard>(frames, processors);
        Ok(Self::over(Shared::open(path, Self::words(&sizes))?, sizes))
    }

    fn over(shared: Shared, sizes: Sizes) -> Self {
        let upper = Arrays::new(&Sizes { rows: 0, children: 0, ..sizes }, 0);
        Self { shared, sizes, upper }
    }

    fn words(sizes: &Sizes) -> usize {
        PAGE_WORDS + sizes.rows + sizes.children.div_ceil(2).next_multiple_of(LINE / WORD)
    }

    pub fn page(&self) -> &[AtomicU64] {
        &self.shared.words()[..PAGE_WORDS]
    }

    pub fn metadata(&self) -> Metadata<'_> {
        let rows = PAGE_WORDS..PAGE_WORDS + self.sizes.rows;
        let children = self.shared.halves(rows.end..self.shared.words().len());
        Metadata { rows: &self.shared.words()[rows], children, ..self.upper.metadata() }
    }
}

#[cfg(test)]
mod tests;
