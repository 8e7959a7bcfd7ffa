//! Defragmentation: objects of sparse slabs move to fuller ones, each by one operation of two lines
//! (as PMDK's defrag; NVAlloc has none, §3.2).
//!
//! **Cost.** Two fences and the copy for an object that moves; a lock for one that stays.

use crate::alloc::Found;
use crate::class::{SIZES, class_of};
use crate::error::Error;
use crate::heap::{Heap, Offset, Slot};
use craton_base::{Medium, Space};

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Moved {
    pub objects: u64,
    pub bytes: u64,
}

impl<M: Medium + Space> Heap<M> {
    /// Moves the slots' small objects out of sparse slabs, and returns empty slabs. No other word
    /// may hold an object's offset, and no other thread may use the slots. After an error, earlier
    /// objects have moved.
    pub fn defrag(&self, slots: impl IntoIterator<Item = Slot>) -> Result<Moved, Error> {
        // Cached objects keep slabs from being empty.
        (0..SIZES.len()).for_each(|number| self.empty_cache(&self.enter(0), number));
        let mut moved = Moved::default();
        for slot in slots {
            let bytes = self.move_object(slot)?;
            moved.objects += u64::from(bytes > 0);
            moved.bytes += bytes;
        }
        self.retire_empty();
        Ok(moved)
    }

    /// Bytes, if it moved.
    fn move_object(&self, slot: Slot) -> Result<u64, Error> {
        self.check_slot(slot)?;
        let at = self.load(slot.0);
        let Some(tag) = self.units.get(at) else { return Ok(0) };
        let found = self.find(at)?;
        let number = match found {
            Found::Small { number, .. } => number,
            Found::Old { .. } => class_of(self.size_of(Offset(at))?),
            Found::Large { .. } => return Ok(0),
        };
        let (class, sparse) = (&self.classes[number], &self.classes[tag.class]);
        let fuller = self.lock_arena(tag.arena).take_fuller(tag.slab, sparse.objects, number, class);
        let Some(object) = fuller else { return Ok(0) };
        self.copy(at, object.at(), class.size.into());
        self.flush_range(object.at(), class.size.into());
        self.medium.fence();
        let guard = self.enter(2);
        match self.redo_free(0, at, &found) {
            Ok(freed) => self.commit(guard, &[self.redo_alloc(slot.0, at, number, object), freed], &[]),
            Err(error) => {
                self.release(&guard, number, &[object]);
                return Err(error);
            }
        }
        // To its slab: the cache would serve it again at once.
        let guard = self.enter(1);
        match found {
            Found::Small { number, object } => self.release(&guard, number, &[object]),
            Found::Old { tag, index } => self.finish_old(&guard, tag, index),
            Found::Large { .. } => {}
        }
        Ok(class.size.into())
    }
}
