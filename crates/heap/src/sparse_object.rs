//! Sparse objects: large ones of which a program touches little, outside of the region.
//!
//! Each has hugepages of a stretch ([`crate::huge::Stretches`]), or else a separate mapping.
//!
//! **Threads.** Memory is released without the table's lock: until then the addresses count as
//! taken.

use crate::heap::Heap;
use crate::hooks::{Event, Hooks};
use crate::huge::Entry;
use core::ptr::null_mut;
use craton_base::{Bytes, Clock, HUGEPAGE_SIZE, HugePages, Mappings, Platform};
use craton_pages::PageHeapExt;

/// The kernel may join them.
const MOST_SPARSE: usize = 16 << 10;

impl<F: Platform, C: Clock, H: Hooks> Heap<F, C, H> {
    /// Whether the heap would grow for it, and the region's metadata would weigh more than a
    /// mapping.
    pub fn is_better_apart(&self, size: usize) -> bool {
        let Some(pages) = Bytes(size).pages_up() else { return false };
        let sparse = self.pages.lock().is_better_apart(pages);
        sparse && {
            let table = self.huge.lock();
            table.len() < MOST_SPARSE && !table.is_dense(pages)
        }
    }

    /// Reads as zeros. Null without memory.
    pub fn allocate_sparse(&self, size: usize, align: usize) -> *mut u8 {
        let Some(bytes) = size.checked_next_multiple_of(HUGEPAGE_SIZE) else { return null_mut() };
        if align > HUGEPAGE_SIZE || !self.admit_huge(0, bytes) {
            return null_mut();
        }
        let Some(entry) = self.enter_sparse(bytes) else {
            self.forget_huge(0, bytes);
            return self.map_object(bytes, align, true);
        };
        self.count_huge(entry.bytes as u64, 0);
        H::event(Event::HugeAlloc);
        self.publish_huge();
        entry.at as *mut u8
    }

    fn enter_sparse(&self, bytes: usize) -> Option<Entry> {
        let mut table = self.huge.lock();
        table.prepare(&self.system).ok()?;
        let at = table.stretches.take(&self.system, HugePages((bytes / HUGEPAGE_SIZE) as u32))?;
        let entry = Entry { at, bytes };
        table.insert(entry);
        // Its use decides where later ones go.
        table.worth(&self.system, entry);
        Some(entry)
    }

    /// The table no longer lists the object.
    pub(crate) fn give_sparse(&self, entry: Entry) {
        self.system.discard(entry.at, entry.bytes);
        let empty = self.huge.lock().stretches.give(entry);
        empty.inspect(|stretch| self.system.unmap(stretch.at, stretch.bytes));
    }

    /// `None`: unchanged, the caller must copy.
    pub(crate) fn resize_sparse(&self, entry: Entry, size: usize) -> Option<*mut u8> {
        let bytes = size.checked_next_multiple_of(HUGEPAGE_SIZE)?;
        if bytes == entry.bytes {
            return Some(entry.at as *mut u8);
        }
        if !self.admit_huge(entry.bytes, bytes) {
            return None;
        }
        let Some(new) = self.enter_resized_sparse(entry, bytes) else {
            self.forget_huge(entry.bytes, bytes);
            return None;
        };
        if new.at != entry.at {
            self.give_sparse(entry);
        } else if bytes < entry.bytes {
            self.give_sparse(Entry { at: entry.at + bytes, bytes: entry.bytes - bytes });
        }
        self.count_huge(bytes as u64, entry.bytes as u64);
        self.publish_huge();
        Some(new.at as *mut u8)
    }

    fn enter_resized_sparse(&self, entry: Entry, bytes: usize) -> Option<Entry> {
        let mut table = self.huge.lock();
        if bytes < entry.bytes || table.stretches.lengthen(entry, bytes) {
            let new = Entry { bytes, ..entry };
            table.remove(entry.at);
            table.insert(new);
            return Some(new);
        }
        drop(table);
        let new = self.enter_moved(entry.at, entry.bytes, bytes)?;
        let mut table = self.huge.lock();
        table.remove(entry.at);
        table.note_gone(entry);
        Some(new)
    }
}
