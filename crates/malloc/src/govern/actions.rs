//! The work of the library's thread, for a program that does it in a thread of its own.

use super::look_at_mailbox;
use crate::here::Here;
use crate::start::set_up;
use crate::statics::{BACKGROUND, HEAP, OBJECT_CACHES, SEGMENT};
use crate::thread::nested;
use craton_os::process;

/// Does what the library's thread does in a second, for a program that has set `background=0` and has a thread for such work;
/// to be called about each second, with 16 KiB of stack to spare. Says whether anything was done: if not for some minutes,
/// each ten seconds are enough. A debugger calls it, too, so that a process which sleeps does what `craton set` asks.
pub fn actions() -> bool {
    if !SEGMENT.has_started() || nested::is_nested() || !set_up() {
        return false;
    }
    let saved = process::errno();
    look_at_mailbox(true);
    let (changed, _) = nested::within(|| BACKGROUND.round(true, &Here));
    let went = OBJECT_CACHES.over(&HEAP).tick(true);
    process::set_errno(saved);
    changed || went
}
