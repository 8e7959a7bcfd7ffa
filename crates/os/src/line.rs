//! One line for standard error, built without memory.
//!
//! **What.** Works with a broken heap: a fixed buffer, one system call. Not inlined: reports are
//! rare. Control characters become question marks.
//! **Failure.** On a full pipe a line waits for [`PATIENCE_MS`] and is dropped; later ones at once
//! until there is room. A process that system calls could kill writes without asking.
//! **Unsafe.** Calls `poll` and `abort`.

use crate::decimal::Decimal;
use crate::{call, thp};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use craton_tables::plain::make_plain;

const PATIENCE_MS: i32 = 5000;
const STEP_MS: i32 = 50;
static IN_VAIN: AtomicBool = AtomicBool::new(false);

pub struct Line {
    text: [u8; Line::CAPACITY],
    len: usize,
}

impl Line {
    pub const CAPACITY: usize = 1024;

    pub const fn new() -> Self {
        Self { text: [0; Self::CAPACITY], len: 0 }
    }

    #[inline(never)]
    pub fn text(mut self, s: &str) -> Self {
        self.push(s.as_bytes());
        self
    }

    #[inline(never)]
    pub fn bytes(mut self, s: &[u8]) -> Self {
        self.push(s);
        self
    }

    #[inline(never)]
    pub fn number(mut self, n: u64) -> Self {
        self.push(Decimal::new(n).as_bytes());
        self
    }

    pub fn size(self, bytes: usize) -> Self {
        self.number(bytes as u64).text(if bytes == 1 { " byte" } else { " bytes" })
    }

    /// In hexadecimal, with `0x`.
    #[inline(never)]
    pub fn address(mut self, a: usize) -> Self {
        let mut digits = [0u8; 16];
        let mut at = digits.len();
        let mut rest = a;
        loop {
            at -= 1;
            digits[at] = b"0123456789abcdef"[rest % 16];
            rest /= 16;
            if rest == 0 {
                break;
            }
        }
        self.push(b"0x");
        self.push(&digits[at..]);
        self
    }

    #[inline(never)]
    fn push(&mut self, s: &[u8]) {
        let n = s.len().min(Self::CAPACITY - 1 - self.len);
        let place = &mut self.text[self.len..self.len + n];
        place.copy_from_slice(&s[..n]);
        make_plain(place);
        self.len += n;
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.text[..self.len]
    }

    /// With a newline; ignores failure.
    #[inline(never)]
    pub fn write_to(mut self, fd: i32) {
        if !has_room(fd) {
            return;
        }
        call::write(fd, self.ended());
    }

    /// With a newline.
    pub(crate) fn ended(&mut self) -> &[u8] {
        // `push` leaves room for it.
        self.text[self.len] = b'\n';
        &self.text[..=self.len]
    }

    pub fn print(self) {
        self.write_to(libc::STDERR_FILENO);
    }

    /// Raises `SIGABRT`.
    #[cold]
    pub fn abort(self) -> ! {
        self.abort_after(|_| ())
    }

    /// Raises `SIGABRT` once the line is printed and `last` has run, which may fail.
    #[cold]
    pub fn abort_after(self, last: impl FnOnce(&Self)) -> ! {
        Self::new().bytes(self.as_bytes()).print();
        last(&self);
        // SAFETY: no preconditions.
        unsafe { libc::abort() }
    }
}

/// False for a broken pipe, whose signal would end the program.
fn has_room(fd: i32) -> bool {
    if !thp::may_query() {
        return true;
    }
    let mut left = if IN_VAIN.load(Relaxed) { 0 } else { PATIENCE_MS };
    loop {
        let mut polled = libc::pollfd { fd, events: libc::POLLOUT, revents: 0 };
        let step: libc::c_long = left.min(STEP_MS).into();
        let time = libc::timespec { tv_sec: 0, tv_nsec: step * 1_000_000 };
        // SAFETY: one live entry, no mask. By number: no cancellation point.
        let ready = unsafe { libc::syscall(libc::SYS_ppoll, &raw mut polled, 1, &raw const time, 0, 0) };
        if ready > 0 {
            IN_VAIN.store(false, Relaxed);
            return polled.revents & (libc::POLLERR | libc::POLLHUP | libc::POLLNVAL) == 0;
        }
        if ready < 0 && crate::process::errno() != libc::EINTR {
            return true;
        }
        left -= STEP_MS;
        if left <= 0 {
            IN_VAIN.store(true, Relaxed);
            return false;
        }
    }
}

/// # Safety
/// The stream is open.
pub unsafe fn write_to_stream(stream: *mut core::ffi::c_void, mut line: Line) {
    line.text[line.len] = b'\n';
    // SAFETY: by the contract; `push` leaves room for the newline.
    unsafe { libc::fwrite(line.text.as_ptr().cast(), 1, line.len + 1, stream.cast()) };
}
