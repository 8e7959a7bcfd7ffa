//! [`WrittenBack`]: persistent memory behind volatile caches, written back at each change (LLFree
//! §3.2.3).

use craton_frames::Media;
use craton_os::WriteBack;

#[derive(Clone, Copy, Debug)]
pub struct WrittenBack(WriteBack);

impl WrittenBack {
    /// `None`: the processor cannot.
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
