//! A thread cache's layout, for readers of another process's memory.

use super::{List, ThreadCache, stages};
use core::mem::offset_of;

impl ThreadCache {
    pub const SHAPE: [(&'static str, usize); 11] = [
        ("thread.bytes", size_of::<Self>()),
        ("thread.next", offset_of!(Self, next)),
        ("thread.pages", offset_of!(Self, pages)),
        ("thread.taken", offset_of!(Self, taken)),
        ("thread.lists", offset_of!(Self, lists)),
        ("thread.list.bytes", size_of::<List>()),
        ("thread.list.head", offset_of!(List, head)),
        stages::SHAPE[0],
        stages::SHAPE[1],
        stages::SHAPE[2],
        stages::SHAPE[3],
    ];
}
