//! The C library's control blocks of threads, at the upper end of stacks, which it keeps for later
//! threads.
//!
//! **State.** On x86-64 a block begins with its address, has it again two words later (glibc's
//! ABI), and holds the thread's number: cleared when the thread ends, -1 after `pthread_join`.
//! **Unsafe.** Reads the calling thread's block, and memory that the caller names.

/// Searched for the number.
const BLOCK: usize = 1024;
const WORD: usize = size_of::<usize>();
const ALIGN: usize = 64;

/// Offset of the thread's number.
#[derive(Clone, Copy, Debug)]
pub struct Blocks {
    number: usize,
}

impl Blocks {
    /// `None`: the calling thread's block has another form.
    pub fn find() -> Option<Self> {
        if cfg!(not(all(target_arch = "x86_64", target_env = "gnu"))) {
            return None;
        }
        let own = super::pointer();
        // SAFETY: the thread's block is longer: glibc's has some 2300 bytes.
        let word = |at: usize| unsafe { ((own + at) as *const u32).read() };
        let number = (3 * WORD..BLOCK).step_by(size_of::<u32>()).find(|at| word(*at) == crate::process::thread_id())?;
        let this = Self { number };
        // SAFETY: as above.
        (unsafe { this.is_block(own) }).then_some(this)
    }

    /// # Safety
    /// `at` is aligned, and `BLOCK` bytes there can be read.
    unsafe fn is_block(self, at: usize) -> bool {
        // SAFETY: by the contract.
        unsafe { (at as *const usize).read() == at && ((at + 2 * WORD) as *const usize).read() == at }
    }

    /// `None`: no block, or its thread lives.
    ///
    /// # Safety
    /// The range can be read.
    /// The range can be read.
    pub unsafe fn ended_in(self, start: usize, end: usize) -> Option<usize> {
        let mut found = None;
        let mut at = start.next_multiple_of(ALIGN);
        while at + BLOCK <= end {
            // SAFETY: by the contract.
            if unsafe { self.is_block(at) } {
                // SAFETY: as above; the number lies in the block.
                if unsafe { ((at + self.number) as *const i32).read() } > 0 {
                    return None;
                }
                found = Some(at);
            }
            at += ALIGN;
        }
        found
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
