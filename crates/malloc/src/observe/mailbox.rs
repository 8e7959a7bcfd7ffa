//! The mailbox: options set from outside a running program.
//!
//! **What.** `craton set` writes a request, and makes fast paths fail
//! ([`craton_heap::thread_cache::ThreadCache::fail`]). Slow requests, frees into per-CPU caches
//! and, once a second, the library's thread read it.
//!
//! **State.** A request has a number above 0, and settings separated by 0; its answer lists refused
//! ones, `NUMBER:WHY`, likewise. Idle while `taken` = `answered`.
//! ```text
//! writer: text, length, then asked = n     process: asked → 0, taken = n, answer, length, then answered = n
//! ```
//! A writer that finds `asked` > 0 sets it to 0, appends its settings and asks with the next
//! number; the first writer finds its own in that answer. A writer that gives up stores its number
//! in `left`, then re-reads `asked`: if unchanged, the process itself reports refusals.
//!
//! **Unsafe.** Another process writes the texts, plain memory.

use crate::observe::text::Text;
use crate::options::wrong::Wrong;
use core::cell::UnsafeCell;
use core::mem::offset_of;
use core::sync::atomic::{AtomicU32, Ordering, Ordering::Relaxed};

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

// SAFETY: the thread that exchanges `asked` for 0, and another process, use the texts in the order
// above.
unsafe impl Sync for Mailbox {}

impl Mailbox {
    pub(crate) const TEXT: usize = 640;

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

    #[inline(always)]
    pub(crate) fn is_asked(&self) -> bool {
        self.asked.load(Relaxed) != 0
    }

    /// The writer has given up.
    pub(crate) fn is_left(&self) -> bool {
        // ORDERING: pairs with the exchange in `serve`.
        self.left.load(Ordering::SeqCst) == self.taken.load(Relaxed)
    }

    /// The parent has the request.
    pub(crate) fn forked(&self) {
        self.asked.store(0, Relaxed);
        self.left.store(0, Relaxed);
        self.answered.store(self.taken.load(Relaxed), Relaxed);
    }

    pub(crate) fn serve(&self, set: impl FnMut(&[u8]) -> Result<(), Wrong<'_>>) {
        // ORDERING: pairs with the writer's stores and the Release below, so the text is
        // complete; and with `is_left`: a writer that stores `left` and sees `asked` comes first.
        let number = self.asked.swap(0, Ordering::SeqCst);
        if number == 0 {
            return;
        }
        self.taken.store(number, Relaxed);
        let len = (self.request_len.load(Relaxed) as usize).min(Self::TEXT);
        // SAFETY: the request is ours. Volatile: another process wrote it.
        let text: [u8; Self::TEXT] = unsafe { self.request.get().read_volatile() };
        let mut whole = [0; Self::TEXT];
        let len = answer(&text[..len], &mut whole, set);
        // SAFETY: likewise.
        unsafe { self.answer.get().write_volatile(whole) };
        self.answer_len.store(len as u32, Relaxed);
        // ORDERING: pairs with the reader's loads.
        self.answered.store(number, Ordering::Release);
    }
}

/// Returns the length.
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
