//! Options that are set from outside, while the program runs.
//!
//! **What.** `craton set PID KEY=VALUE` writes a request into this mailbox, which [`crate::observe::inspect`] leads to; the process looks at it in its
//! slow requests and, once a second, in the heap's own thread, does what it asks, and writes the answer. So that a process comes to a slow request
//! whose threads' caches serve all that it asks for, the writer has their frees fail ([`craton_heap::thread_cache::ThreadCache::fail`]); a
//! free into a processor's cache looks each time. Arrays of object caches lose their owner, for one request to come by. A process that asks for nothing does not look: the request stays until it does.
//!
//! **State.** A request has a number above 0. Its text is one setting or several, with a 0 between them:
//! ```text
//! writer: text, length, then asked = n     process: asked → 0, taken = n, answer, length, then answered = n
//! ```
//! Nobody is at a request while `taken` is `answered`. A writer who finds one that waits (`asked` is above 0) puts `asked` back to 0, adds his
//! settings to its text, and asks with the next number: whoever wrote the first finds his own settings at their place in the answer to the second.
//! A writer who waits no longer puts his number into `left`, and then looks whether `asked` still has it: if so, the process says itself what it refuses.
//!
//! **Threads.** Whoever exchanges `asked` for 0 has the request, and is the only one to write until he has answered.
//!
//! **Failure.** The answer names the settings that were refused, `NUMBER:WHY` with a 0 between two of them; none is an empty answer.
//!
//! **Cost.** A load in requests that are slow anyway, and in frees into processors' caches.
//!
//! **Unsafe.** The texts are plain memory, which another process writes.

use crate::observe::text::Text;
use crate::options::wrong::Wrong;
use core::cell::UnsafeCell;
use core::mem::offset_of;
use core::sync::atomic::{AtomicU32, Ordering, Ordering::Relaxed};

/// The place for one request and its answer.
#[repr(C)]
#[derive(Debug)]
pub struct Mailbox {
    asked: AtomicU32,
    taken: AtomicU32,
    answered: AtomicU32,
    left: AtomicU32,
    request_len: AtomicU32,
    answer_len: AtomicU32,
    request: UnsafeCell<[u8; Self::TEXT]>,
    answer: UnsafeCell<[u8; Self::TEXT]>,
}

// SAFETY: the texts are used by whoever has the request, and by another process, which keeps to the order above.
unsafe impl Sync for Mailbox {}

impl Mailbox {
    /// Bytes of a request, and of an answer, at the most.
    pub(crate) const TEXT: usize = 640;

    /// Offsets in bytes.
    pub(crate) const SHAPE: [(&'static str, usize); 8] = [
        ("mailbox.asked", offset_of!(Self, asked)),
        ("mailbox.taken", offset_of!(Self, taken)),
        ("mailbox.answered", offset_of!(Self, answered)),
        ("mailbox.left", offset_of!(Self, left)),
        ("mailbox.request.len", offset_of!(Self, request_len)),
        ("mailbox.answer.len", offset_of!(Self, answer_len)),
        ("mailbox.request", offset_of!(Self, request)),
        ("mailbox.answer", offset_of!(Self, answer)),
    ];

    pub(crate) const fn empty() -> Self {
        Self {
            asked: AtomicU32::new(0),
            taken: AtomicU32::new(0),
            answered: AtomicU32::new(0),
            left: AtomicU32::new(0),
            request_len: AtomicU32::new(0),
            answer_len: AtomicU32::new(0),
            request: UnsafeCell::new([0; Self::TEXT]),
            answer: UnsafeCell::new([0; Self::TEXT]),
        }
    }

    /// Whether there is a request.
    #[inline(always)]
    pub(crate) fn is_asked(&self) -> bool {
        self.asked.load(Relaxed) != 0
    }

    /// Whether nobody waits any more for the answer to the request that is served.
    pub(crate) fn is_left(&self) -> bool {
        // ORDERING: SeqCst pairs with the exchange in `serve`.
        self.left.load(Ordering::SeqCst) == self.taken.load(Relaxed)
    }

    /// In a forked child: the request of another process was to the parent.
    pub(crate) fn forked(&self) {
        self.asked.store(0, Relaxed);
        self.left.store(0, Relaxed);
        self.answered.store(self.taken.load(Relaxed), Relaxed);
    }

    /// Does what a request asks by `set`, which says what is wrong with a setting.
    pub(crate) fn serve(&self, set: impl FnMut(&[u8]) -> Result<(), Wrong<'_>>) {
        // ORDERING: SeqCst pairs with the writer's order of its stores, and with the Release below: the text is seen whole; and with the load in
        // `is_left`: who writes `left` and then still sees `asked` comes before this.
        let number = self.asked.swap(0, Ordering::SeqCst);
        if number == 0 {
            return;
        }
        self.taken.store(number, Relaxed);
        let len = (self.request_len.load(Relaxed) as usize).min(Self::TEXT);
        // SAFETY: the request is ours, so that nobody writes its text. Another process wrote it, which the compiler does not see: so it is
        // read as something that may change.
        let text: [u8; Self::TEXT] = unsafe { self.request.get().read_volatile() };
        let mut whole = [0; Self::TEXT];
        let len = answer(&text[..len], &mut whole, set);
        // SAFETY: likewise.
        unsafe { self.answer.get().write_volatile(whole) };
        self.answer_len.store(len as u32, Relaxed);
        // ORDERING: Release pairs with the reader's order of its loads: who sees the number sees the answer.
        self.answered.store(number, Ordering::Release);
    }
}

/// Sets each of a request's settings, and writes which of them are refused; returns the answer's bytes.
fn answer(request: &[u8], into: &mut [u8], mut set: impl FnMut(&[u8]) -> Result<(), Wrong<'_>>) -> usize {
    let (most, mut answer, mut refused) = (into.len(), Text::new(into), 0);
    for (i, setting) in request.split(|b| *b == 0).enumerate() {
        if let Err(wrong) = set(setting) {
            answer.bytes(if refused > 0 { &[0] } else { &[] }).number(i as u64).text(":");
            if !wrong.part.is_empty() {
                answer.text("\"").bytes(wrong.part).text("\" ");
            }
            answer.text(wrong.why);
            refused += 1;
        }
    }
    answer.end().min(most)
}

#[cfg(test)]
mod tests;
