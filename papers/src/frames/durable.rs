//! [`WrittenBack`]: persistent memory behind volatile caches, written back at each change.
//!
//! **From.** LLFree §3.2.3, which allows this, but is measured with persistent caches.

use craton_frames::Media;
use craton_os::WriteBack;

#[derive(Clone, Copy, Debug)]
pub struct WrittenBack(WriteBack);

impl WrittenBack {
    /// None if the processor cannot write lines back.
    pub fn detect() -> Option<Self> {
        WriteBack::detect().map(Self)
    }
}

impl Media for WrittenBack {
    #[inline(always)]
    fn flush<W>(&self, word: &W) {
        self.0.flush(word);
    }

    #[inline(always)]
    fn fence(&self) {
        self.0.fence();
    }
}
