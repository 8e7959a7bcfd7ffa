//! The newest transactions of the debugging kit's log.

use crate::heap::Heap;
use crate::kit::Log;

/// The last so many, the newest first, with their stacks.
///
/// # Errors
/// The library's tables cannot be read.
pub fn log(heap: &Heap<'_>, last: u64) -> Result<Log, String> {
    heap.kit.log(&heap.reader, &heap.table, last)
}
