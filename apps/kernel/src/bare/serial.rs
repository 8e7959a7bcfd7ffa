//! The first serial port.

use super::machine::{in8, out8};
use core::fmt::{self, Write};
use core::sync::atomic::{AtomicBool, Ordering};

const PORT: u16 = 0x3f8;
const IS_EMPTY: u8 = 0x20;

struct Port;

impl Write for Port {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            // SAFETY: a serial port has no access to memory.
            unsafe {
                while in8(PORT + 5) & IS_EMPTY == 0 {}
                out8(PORT, byte);
            }
        }
        Ok(())
    }
}

static IS_BUSY: AtomicBool = AtomicBool::new(false);

pub fn line(text: fmt::Arguments<'_>) {
    // ORDERING: acquire pairs with the release below: lines do not mix.
    while IS_BUSY.swap(true, Ordering::Acquire) {
        core::hint::spin_loop();
    }
    // A serial port refuses nothing.
    let _ = Port.write_fmt(format_args!("{text}\n"));
    // ORDERING: pairs with the acquire above.
    IS_BUSY.store(false, Ordering::Release);
}

/// Without a wait: the writer may be the one that failed.
pub fn last_line(text: fmt::Arguments<'_>) {
    let _ = Port.write_fmt(format_args!("\n{text}\n"));
}

macro_rules! report {
    ($step:expr $(, $name:literal: $value:expr)* $(,)?) => {
        $crate::serial::line(format_args!(
            concat!("{{\"step\":\"{}\"" $(, ",\"", $name, "\":{}")*, "}}"), $step $(, $value)*
        ))
    };
}
pub(crate) use report;

macro_rules! fail {
    ($($text:tt)*) => {{
        $crate::serial::last_line(format_args!("{{\"step\":\"failed\",\"why\":\"{}\"}}", format_args!($($text)*)));
        $crate::machine::leave(false)
    }};
}
pub(crate) use fail;
