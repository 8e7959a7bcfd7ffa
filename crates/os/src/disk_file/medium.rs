//! A heap file's medium: private memory.

use super::DiskFile;
use crate::persistent_file::{PersistentFile, media, space};
use core::sync::atomic::{AtomicU32, AtomicU64};
use craton_base::{LINE_BYTES, Line, Medium, Space, SpaceError};

impl Medium for DiskFile {
    const FLUSHES: bool = false;

    #[inline(always)]
    fn len(&self) -> u64 {
        self.memory.len()
    }

    #[inline(always)]
    fn word(&self, at: u64) -> &AtomicU64 {
        self.memory.word(at)
    }

    #[inline(always)]
    fn store_line(&self, at: u64, line: &Line) {
        media::store_words(self.memory.at(at, LINE_BYTES), line);
    }

    #[inline(always)]
    fn flush(&self, _at: u64) {}

    #[inline(always)]
    fn fence(&self) {}

    fn words(&self, at: u64, words: usize) -> Option<&[AtomicU64]> {
        self.memory.words(at, words)
    }

    fn half_array(&self, at: u64, words: usize) -> Option<&[AtomicU32]> {
        self.memory.half_words(at, words)
    }
}

impl Space for DiskFile {
    fn resize(&self, len: u64) -> Result<(), SpaceError> {
        space(self.resize_memory(len))
    }

    fn discard(&self, at: u64, len: u64) -> Result<(), SpaceError> {
        PersistentFile::is_whole_pages(at, len).map_err(SpaceError::from)?;
        if at.checked_add(len).is_none_or(|end| end > self.len()) {
            return Err(SpaceError::Full);
        }
        self.zero(at, len);
        Ok(())
    }

    fn limit(&self) -> u64 {
        self.memory.limit()
    }
}
