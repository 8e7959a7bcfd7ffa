//! Options that another process sets.
//!
//! **Unsafe.** Empties the thread's cache.

use super::{complain, try_setting};
use crate::govern;
use crate::observe::inspect::INSPECT;
use crate::observe::recording;
use crate::statics::MAILBOX;
use crate::thread::tls;

/// `may_wait`: for the end of the library's thread, which cannot, nor can a free that the C library
/// makes under a lock.
#[cold]
pub(crate) fn read_mailbox(may_wait: bool) {
    // Without a use a static linker drops the table.
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
        // SAFETY: the calling thread's cache.
        unsafe { govern::flush_if_requested(cache) };
    }
}
