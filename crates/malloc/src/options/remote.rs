//! Options that another process sets.
//!
//! **Unsafe.** Empties the calling thread's cache.

use super::{complain, try_setting};
use crate::govern;
use crate::observe::inspect::INSPECT;
use crate::observe::recording;
use crate::statics::MAILBOX;
use crate::thread::tls;

/// Serves the mailbox. `may_wait`: the caller can wait for the end of the library's thread. That
/// thread cannot, nor can a free that the C library makes under a lock.
#[cold]
pub(crate) fn read_mailbox(may_wait: bool) {
    // A use of the table, without which a static linker would drop it.
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
        // SAFETY: `tls` returned the calling thread's cache.
        unsafe { govern::flush_if_requested(cache) };
    }
}
