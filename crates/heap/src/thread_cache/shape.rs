//! For readers of another process's memory.

use super::{List, Pace, ThreadCache, count, sampling, stages};
use core::mem::offset_of;

impl ThreadCache {
    pub const SHAPE: [(&'static str, usize); 22] = [
        ("thread.bytes", size_of::<Self>()),
        ("thread.next", offset_of!(Self, next)),
        ("thread.pages", offset_of!(Self, pages)),
        ("thread.taken", offset_of!(Self, taken)),
        ("thread.lists", offset_of!(Self, lists)),
        ("thread.list.bytes", size_of::<List>()),
        ("thread.list.head", offset_of!(List, head)),
        ("thread.list.room", offset_of!(List, room)),
        ("thread.room.one", count::ONE as usize),
        ("thread.room.popped", count::POPPED as usize),
        ("thread.paces", offset_of!(Self, paces)),
        ("thread.pace.bytes", size_of::<Pace>()),
        ("thread.pace.max", offset_of!(Pace, max)),
        stages::SHAPE[0],
        stages::SHAPE[1],
        stages::SHAPE[2],
        stages::SHAPE[3],
        sampling::SHAPE[0],
        sampling::SHAPE[1],
        sampling::SHAPE[2],
        sampling::SHAPE[3],
        sampling::SHAPE[4],
    ];
}
