//! Page frames for a Linux module. A panic calls the kernel's `craton_frames_panic`, which does not
//! return.
#![no_std]

pub use craton_frames_c::*;

use core::fmt::{self, Write};

unsafe extern "C" {
    fn craton_frames_panic(text: *const u8, bytes: usize) -> !;
}

const MOST: usize = 240;

struct Text {
    bytes: [u8; MOST],
    len: usize,
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = text.len().min(MOST - self.len);
        self.bytes[self.len..self.len + room].copy_from_slice(&text.as_bytes()[..room]);
        self.len += room;
        Ok(())
    }
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    let mut text = Text { bytes: [0; MOST], len: 0 };
    // A text that is too long is cut.
    let _ = write!(text, "{info}");
    // SAFETY: the kernel's, with a text that lives while it is called.
    unsafe { craton_frames_panic(text.bytes.as_ptr(), text.len) }
}
