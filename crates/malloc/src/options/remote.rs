//! Options that another process sets.
//!
//! **Unsafe.** Empties the calling thread's cache.

use super::{complain, try_setting};
use crate::govern;
use crate::observe::inspect::INSPECT;
use crate::observe::recording;
use crate::statics::MAILBOX;
use crate::thread::tls;

/// Does what is asked. `may_wait`: the caller can wait for the end of the heap's own thread, which that thread itself cannot, nor a free that the C
/// library may have made under a lock of its own.
#[cold]
pub(crate) fn read_mailbox(may_wait: bool) {
    // Here something uses the table, without which a linker would leave it out of a program.
    core::hint::black_box(&raw const INSPECT);
    MAILBOX.serve(|setting| {
        let set = try_setting(setting, may_wait);
        recording::begin();
        if let (true, Err(wrong)) = (MAILBOX.is_left(), set) {
            complain(setting, wrong);
        }
        set
    });
    if let Some(cache) = tls::own() {
        // SAFETY: it is this thread's cache.
        unsafe { govern::heed(cache) };
    }
}
