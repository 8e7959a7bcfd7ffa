//! Huge objects: their mappings, and large objects that outgrow the region.
//!
//! Huge objects grow in place, or by moving page tables to where hugepages stay whole. A large
//! object moves its whole hugepages into a separate mapping in 12 to 60 µs; a copy takes 75 µs for
//! each 2 MiB and doubles the memory for a moment.
//!
//! **Threads.** Under the table's lock, so that no thread sees a stale address. The page heap
//! learns of a move only on success.
//!
//! **Unsafe.** Copies the rest of a moved object.

use crate::heap::Heap;
use crate::hooks::{Event, Hooks};
use crate::huge::{Entry, HUGE_MIN, see, see_at};
use crate::misuse::Misuse;
use core::ptr::null_mut;
use core::sync::atomic::Ordering::Relaxed;
use craton_base::{Clock, HUGEPAGE_SIZE, HugePages, Machine, Mappings, PAGE_SIZE, PageId, PageRange, Pages, Platform};
use craton_pages::{HugeBacking, PageHeapExt, Seen};

/// A copy of one hugepage takes 40 to 75 µs; a move 12 µs, but 20 µs more at the free, and the page
/// heap loses the hugepage.
const MOVE_MIN: HugePages = HugePages(2);
/// Shorter objects are copied into the region.
const SHRINK_MIN: usize = 4 << 20;
/// A process may have 65,530 mappings.
const MOST_MOVED: usize = 1024;
/// Further objects are whole hugepages, whose mappings the kernel joins.
const MOST_APART: usize = 1024;
const MOST_KEPT: usize = 64 << 20;
const MOST_KEPT_PART: usize = 8;
/// With this alignment few small objects share a hugepage.
const LONELY_ALIGN: usize = HUGEPAGE_SIZE / 4;
const ROOM_PART: usize = 4;

impl<F: Platform, C: Clock, H: Hooks> Heap<F, C, H> {
    pub fn allocate_huge(&self, size: usize, align: usize, zero: bool) -> *mut u8 {
        let Some(bytes) = self.whole_pages(size.max(1)) else { return null_mut() };
        match size.checked_next_multiple_of(HUGEPAGE_SIZE) {
            Some(whole) if self.huge.lock().len() >= MOST_APART => self.map_object(whole, align, zero),
            _ => self.map_object(bytes, align, zero),
        }
    }

    pub(crate) fn map_object(&self, bytes: usize, align: usize, zero: bool) -> *mut u8 {
        // Aligned, the whole object can be huge.
        let is_whole = bytes >= HUGE_MIN || bytes.is_multiple_of(HUGEPAGE_SIZE);
        let wish = if is_whole { align.max(HUGEPAGE_SIZE) } else { align };
        let (kept, had) = if bytes >= HUGE_MIN { self.take_kept(bytes, wish, zero) } else { (None, 0) };
        let counted = kept.map_or(bytes, |entry| entry.bytes);
        if !self.admit_huge(0, counted) {
            kept.inspect(|entry| self.system.unmap(entry.at, entry.bytes));
            return null_mut();
        }
        let entry = self.enter_huge(kept, bytes, wish, align);
        let entry =
            entry.or_else(|| if self.drop_kept() > 0 { self.enter_huge(None, bytes, wish, align) } else { None });
        let Some(entry) = entry else {
            self.forget_huge(0, counted);
            return null_mut();
        };
        if entry.bytes != counted {
            self.gate.add_huge(entry.bytes as u64);
            self.gate.remove_huge(counted as u64);
        }
        match kept {
            None => self.back_new(entry),
            Some(_) => self.back_grown(Entry { bytes: had, ..entry }, entry),
        }
        self.count_huge(entry.bytes as u64, 0);
        H::event(Event::HugeAlloc);
        self.publish_huge();
        entry.at as *mut u8
    }

    fn enter_huge(&self, kept: Option<Entry>, bytes: usize, wish: usize, align: usize) -> Option<Entry> {
        let mut table = self.huge.lock();
        if table.prepare(&self.system).is_err() {
            kept.inspect(|entry| self.system.unmap(entry.at, entry.bytes));
            return None;
        }
        let new = || self.system.map(bytes, wish).or_else(|| self.system.map(bytes, align));
        let entry = match kept {
            Some(entry) => entry,
            None => Entry { at: new()?, bytes },
        };
        table.insert(entry);
        Some(entry)
    }

    /// Also returns the former bytes.
    fn take_kept(&self, bytes: usize, align: usize, zero: bool) -> (Option<Entry>, usize) {
        let mut table = self.huge.lock();
        if !zero && let Some(entry) = table.kept.take(bytes, align) {
            self.gate.remove_huge(entry.bytes as u64);
            // An eighth too much costs less than new faults.
            if entry.bytes >= bytes && entry.bytes - bytes <= bytes / 8 {
                return (Some(entry), entry.bytes);
            }
            // An end inside a hugepage would stay on small pages.
            let resized = resized(&self.system, entry, bytes.next_multiple_of(HUGEPAGE_SIZE));
            if let Some(good) = resized.filter(|e| e.at.is_multiple_of(align)) {
                return (Some(good), entry.bytes);
            }
            let useless = resized.unwrap_or(entry);
            self.system.unmap(useless.at, useless.bytes);
        }
        if table.kept.note_miss(bytes, self.clock.now_ns()) {
            H::event(Event::MappingKept);
        }
        // The new mapping must not add to kept memory.
        let mut left = bytes;
        while left > 0
            && let Some(old) = table.kept.take_oldest()
        {
            self.unmap_kept(old);
            left = left.saturating_sub(old.bytes);
        }
        (None, 0)
    }

    pub fn is_lonely(&self, size: usize, align: usize) -> bool {
        align >= LONELY_ALIGN && size <= align / 4 && self.huge.lock().len() < MOST_MOVED
    }

    pub fn backs_huge(&self) -> bool {
        self.pages.lock().backing() != HugeBacking::NEVER
    }

    fn back_new(&self, entry: Entry) {
        let from = match self.pages.lock().backing() {
            HugeBacking::NEVER => None,
            HugeBacking::ALWAYS => Some(entry.at),
            _ => self.huge.lock().worth(&self.system, entry),
        };
        let end = entry.at + entry.bytes;
        let from = from.unwrap_or(end).min(end);
        if from > entry.at {
            self.system.refuse_huge(entry.at, from - entry.at, true);
        }
        if from < end {
            self.system.advise_huge(from, end - from);
        }
    }

    /// A part copied once is always dense.
    fn back_grown(&self, old: Entry, new: Entry) {
        let had = Entry { at: new.at, ..old };
        let end = old.bytes / HUGEPAGE_SIZE * HUGEPAGE_SIZE;
        if new.bytes > old.bytes
            && end > 0
            && self.backs_huge()
            && see_at(&self.system, had, end - HUGEPAGE_SIZE) == Seen::Dense
            && see(&self.system, had) == Seen::Dense
        {
            self.system.advise_huge(new.at, new.bytes);
        }
    }

    pub(crate) fn count_huge(&self, more: u64, less: u64) {
        self.huge_bytes.fetch_add(more.wrapping_sub(less), Relaxed);
        H::event(Event::HugeBytes { more, less });
    }

    pub fn free_huge(&self, at: usize) -> Result<(), Misuse> {
        let mut table = self.huge.lock();
        // Of two concurrent frees the table serves one.
        let Some(entry) = table.remove(at) else { return Err(table.misuse(at)) };
        table.review(&self.system, entry);
        table.note_gone(entry);
        self.count_huge(0, entry.bytes as u64);
        if table.stretches.hold(entry.at) {
            drop(table);
            self.give_sparse(entry);
            self.admit_huge(entry.bytes, 0);
            return Ok(());
        }
        let now = self.clock.now_ns();
        let in_use = self.huge_bytes.load(Relaxed) as usize + self.in_use().bytes().0;
        let most = MOST_KEPT + in_use / MOST_KEPT_PART;
        if entry.bytes >= HUGE_MIN && H::keeps_mappings() && table.kept.wants(entry.bytes, most) {
            while !table.kept.has_room(entry.bytes, most)
                && let Some(old) = table.kept.take_oldest()
            {
                self.unmap_kept(old);
            }
            // A kept mapping still counts as in use.
            table.kept.put(entry, now);
            return Ok(());
        }
        if entry.bytes >= HUGE_MIN {
            table.kept.note_gone(entry.bytes, now);
        }
        drop(table);
        self.system.unmap(entry.at, entry.bytes);
        self.admit_huge(entry.bytes, 0);
        Ok(())
    }

    /// `None`: unchanged, the caller must copy.
    pub fn resize_huge(&self, entry: Entry, size: usize) -> Option<*mut u8> {
        if size < SHRINK_MIN {
            return None;
        }
        if self.huge.lock().stretches.hold(entry.at) {
            return self.resize_sparse(entry, size);
        }
        let bytes = self.whole_pages(size)?;
        // A hugepage cut by the object's end is split, and stays so.
        if size > entry.bytes
            && size >= HUGE_MIN / 2
            && let Some(object) = self.resize_huge_to(entry, size.checked_next_multiple_of(HUGEPAGE_SIZE)?)
        {
            return Some(object);
        }
        self.resize_huge_to(entry, bytes)
    }

    fn resize_huge_to(&self, entry: Entry, bytes: usize) -> Option<*mut u8> {
        if !self.admit_huge(entry.bytes, bytes) {
            return None;
        }
        let Some(new) = self.enter_resized(entry, bytes) else {
            self.forget_huge(entry.bytes, bytes);
            return None;
        };
        self.back_grown(entry, new);
        self.count_huge(bytes as u64, entry.bytes as u64);
        self.publish_huge();
        Some(new.at as *mut u8)
    }

    fn enter_resized(&self, entry: Entry, bytes: usize) -> Option<Entry> {
        let mut table = self.huge.lock();
        table.prepare(&self.system).ok()?;
        let new = resized(&self.system, entry, bytes)?;
        table.remove(entry.at);
        if new.at != entry.at {
            table.note_gone(entry);
        }
        table.insert(new);
        Some(new)
    }

    /// `None`: unchanged, the caller must copy.
    pub fn move_out(&self, first: PageId, pages: Pages, size: usize) -> Option<*mut u8> {
        let bytes = self.whole_pages(size)?;
        if pages < MOVE_MIN.pages() || bytes < pages.bytes().0 || self.huge.lock().len() >= MOST_MOVED {
            return None;
        }
        let moved = self.movable(PageRange::new(first, pages));
        if moved < MOVE_MIN || !self.admit_huge(0, bytes) {
            return None;
        }
        let Some(entry) = self.enter_moved(self.address(first) as usize, moved.bytes().0, bytes) else {
            self.forget_huge(0, bytes);
            return None;
        };
        // SAFETY: both are the caller's, with `rest` bytes behind the moved ones.
        unsafe {
            let (rest, moved) = (pages.bytes().0 - moved.bytes().0, moved.bytes().0);
            (entry.at as *mut u8).add(moved).copy_from_nonoverlapping(self.address(first).add(moved), rest);
        }
        self.count_huge(bytes as u64, 0);
        H::event(Event::HugeAlloc);
        self.give_moved_large(first);
        self.publish_huge();
        Some(entry.at as *mut u8)
    }

    pub(crate) fn enter_moved(&self, from: usize, moved: usize, bytes: usize) -> Option<Entry> {
        let mut table = self.huge.lock();
        table.prepare(&self.system).ok()?;
        let at = self.system.map(bytes, HUGEPAGE_SIZE)?;
        if !self.system.move_memory(from, moved, at) {
            self.system.unmap(at, bytes);
            return None;
        }
        // The kernel sees two mappings, which cannot grow or move as one.
        self.system.unmap(at + moved, bytes - moved);
        let Some(entry) = resized(&self.system, Entry { at, bytes: moved }, bytes) else {
            move_back(&self.system, at, moved, from);
            return None;
        };
        table.insert(entry);
        Some(entry)
    }

    fn whole_pages(&self, size: usize) -> Option<usize> {
        size.checked_next_multiple_of(PAGE_SIZE.max(self.system.page_size()))
    }
}

fn resized(system: &(impl Mappings + Machine), entry: Entry, bytes: usize) -> Option<Entry> {
    let Entry { at, bytes: old } = entry;
    if bytes < old {
        system.unmap(at + bytes, old - bytes);
        return Some(Entry { at, bytes });
    }
    if bytes == old || system.grow(at, old, bytes, false).is_some() {
        return Some(Entry { at, bytes });
    }
    // It will grow again: reserve addresses behind it.
    let room = (bytes / ROOM_PART).next_multiple_of(system.page_size());
    if let Some(to) = bytes.checked_add(room).and_then(|all| system.map(all, HUGEPAGE_SIZE)) {
        if system.replace(at, old, to, bytes) {
            system.unmap(to + bytes, room);
            return Some(Entry { at: to, bytes });
        }
        system.unmap(to, bytes + room);
    }
    system.grow(at, old, bytes, true).map(|at| Entry { at, bytes })
}

#[cold]
fn move_back(system: &impl Mappings, at: usize, bytes: usize, to: usize) {
    if !system.replace(at, bytes, to, bytes) {
        // SAFETY: the region is still mapped there, and the caller's.
        unsafe { (to as *mut u8).copy_from_nonoverlapping(at as *const u8, bytes) };
        system.unmap(at, bytes);
    }
}
