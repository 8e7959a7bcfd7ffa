//! The background work, run by the program.

use super::check_mailbox;
use crate::here::Here;
use crate::start::set_up;
use crate::statics::{BACKGROUND, HEAP, OBJECT_CACHES, SEGMENT};
use crate::thread::nested;
use craton_os::process;

/// For a program with `background=0`. Call about each second, with 16 KiB of stack; each ten
/// seconds suffice after ten of `false`. A debugger calls it so that a sleeping process serves
/// `craton set`.
pub fn actions() -> bool {
    if !SEGMENT.has_started() || nested::is_nested() || !set_up() {
        return false;
    }
    let saved = process::errno();
    check_mailbox(true);
    let (changed, _) = nested::within(|| BACKGROUND.round(true, u32::MAX, &Here));
    let went = OBJECT_CACHES.over(&HEAP).tick(true);
    process::set_errno(saved);
    changed || went
}
