//! Options that are set from outside, while the program runs.
//!
//! **What.** `craton set PID KEY=VALUE` writes a request into this mailbox, which [`crate::inspect`] leads to; the process looks at it in its
//! slow requests and, once a second, in the heap's own thread, does what it asks, and writes the answer.
//!
//! **State.** A request has a number above 0:
//! ```text
//! writer: text, length, then asked = n     process: asked → 0, taken = n, answer, length, then answered = n
//! ```
//! The mailbox is free while `asked` is 0 and `taken` is `answered`. A writer that has waited long enough puts `asked` back to 0, if
//! nobody has taken the request by then.
//!
//! **Threads.** Whoever exchanges `asked` for 0 has the request, and is the only one to write until he has answered.
//!
//! **Failure.** The answer is what is wrong with the request, or empty.
//!
//! **Cost.** A load in requests that are slow anyway.
//!
//! **Unsafe.** The texts are plain memory, which another process writes.

use crate::inspect::INSPECT;
use crate::{options, trace};
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
    request_len: AtomicU32,
    answer_len: AtomicU32,
    request: UnsafeCell<[u8; Self::TEXT]>,
    answer: UnsafeCell<[u8; Self::TEXT]>,
}

// SAFETY: the texts are used by whoever has the request, and by another process, which keeps to the order above.
unsafe impl Sync for Mailbox {}

/// The process's own. Never constant: another process writes it.
pub(crate) static MAILBOX: Mailbox = Mailbox::empty();

impl Mailbox {
    /// Bytes of a request, and of an answer, at the most.
    pub(crate) const TEXT: usize = 640;

    /// Offsets in bytes.
    pub(crate) const SHAPE: [(&'static str, usize); 7] = [
        ("mailbox.asked", offset_of!(Self, asked)),
        ("mailbox.taken", offset_of!(Self, taken)),
        ("mailbox.answered", offset_of!(Self, answered)),
        ("mailbox.request.len", offset_of!(Self, request_len)),
        ("mailbox.answer.len", offset_of!(Self, answer_len)),
        ("mailbox.request", offset_of!(Self, request)),
        ("mailbox.answer", offset_of!(Self, answer)),
    ];

    const fn empty() -> Self {
        Self {
            asked: AtomicU32::new(0),
            taken: AtomicU32::new(0),
            answered: AtomicU32::new(0),
            request_len: AtomicU32::new(0),
            answer_len: AtomicU32::new(0),
            request: UnsafeCell::new([0; Self::TEXT]),
            answer: UnsafeCell::new([0; Self::TEXT]),
        }
    }

    /// Whether there is a request.
    #[inline(always)]
    fn is_asked(&self) -> bool {
        self.asked.load(Relaxed) != 0
    }

    /// Does what a request asks by `set`, which says what is wrong with it.
    fn serve(&self, set: impl FnOnce(&[u8]) -> Result<(), &'static str>) {
        // ORDERING: Acquire pairs with the writer's order of its stores, and with the Release below: the text is seen whole.
        let number = self.asked.swap(0, Ordering::Acquire);
        if number == 0 {
            return;
        }
        self.taken.store(number, Relaxed);
        let len = (self.request_len.load(Relaxed) as usize).min(Self::TEXT);
        // SAFETY: the request is ours, so that nobody writes its text. Another process wrote it, which the compiler does not see: so it is
        // read as something that may change.
        let text: [u8; Self::TEXT] = unsafe { self.request.get().read_volatile() };
        let answer = set(&text[..len]).err().unwrap_or_default().as_bytes();
        let len = answer.len().min(Self::TEXT);
        let mut whole = [0; Self::TEXT];
        whole[..len].copy_from_slice(&answer[..len]);
        // SAFETY: likewise.
        unsafe { self.answer.get().write_volatile(whole) };
        self.answer_len.store(len as u32, Relaxed);
        // ORDERING: Release pairs with the reader's order of its loads: who sees the number sees the answer.
        self.answered.store(number, Ordering::Release);
    }
}

/// Whether somebody asks for something.
#[inline(always)]
pub(crate) fn is_asked() -> bool {
    MAILBOX.is_asked()
}

/// Does what is asked. `in_thread` says that the caller is the heap's own thread, which cannot wait for its own end.
#[cold]
pub(crate) fn look(in_thread: bool) {
    // Here something uses the table, without which a linker would leave it out of a program.
    core::hint::black_box(&raw const INSPECT);
    MAILBOX.serve(|text| {
        let Some(equals) = text.iter().position(|b| *b == b'=') else { return Err("not of the form key=value") };
        let set = options::try_set(&text[..equals], &text[equals + 1..], in_thread);
        trace::begin();
        set
    });
}

/// In a forked child: what another thread was at is not done here.
pub(crate) fn forked() {
    MAILBOX.asked.store(0, Relaxed);
    MAILBOX.answered.store(MAILBOX.taken.load(Relaxed), Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::String;
    use std::vec::Vec;

    /// Asks as another process does.
    fn ask(mailbox: &Mailbox, number: u32, text: &[u8]) {
        let mut whole = [0; Mailbox::TEXT];
        whole[..text.len()].copy_from_slice(text);
        // SAFETY: nobody else uses this mailbox.
        unsafe { mailbox.request.get().write_volatile(whole) };
        mailbox.request_len.store(text.len() as u32, Relaxed);
        mailbox.asked.store(number, Relaxed);
    }

    fn answer(mailbox: &Mailbox) -> String {
        // SAFETY: as above.
        let whole = unsafe { mailbox.answer.get().read_volatile() };
        String::from_utf8(whole[..mailbox.answer_len.load(Relaxed) as usize].to_vec()).unwrap()
    }

    #[test]
    fn a_request_is_served_once_and_answered() {
        let (mailbox, mut seen) = (Mailbox::empty(), Vec::new());
        assert!(!mailbox.is_asked());
        mailbox.serve(|_| unreachable!("nobody asks"));
        ask(&mailbox, 7, b"a=b");
        assert!(mailbox.is_asked());
        mailbox.serve(|text| {
            seen.push(text.to_vec());
            Ok(())
        });
        assert!(!mailbox.is_asked());
        assert_eq!((mailbox.answered.load(Relaxed), answer(&mailbox)), (7, String::new()));
        mailbox.serve(|_| unreachable!("it was served"));
        ask(&mailbox, 8, b"c");
        mailbox.serve(|_| Err("too bad"));
        assert_eq!((mailbox.answered.load(Relaxed), answer(&mailbox)), (8, String::from("too bad")));
        assert_eq!(seen, [b"a=b"]);
    }

    #[test]
    fn a_length_beyond_the_text_is_cut() {
        let mailbox = Mailbox::empty();
        ask(&mailbox, 1, b"x");
        mailbox.request_len.store(u32::MAX, Relaxed);
        mailbox.serve(|text| if text.len() == Mailbox::TEXT { Ok(()) } else { Err("other") });
        assert_eq!(answer(&mailbox), "");
    }
}
