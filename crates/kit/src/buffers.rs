//! The life of a buffer: `Live` → `Freeing` → `Freed`, or `Closed` with its pages → gone.
//!
//! **Unsafe.** Fills and reads buffers.

use crate::area::{self, Area};
use crate::audit::{Action, Transaction};
use crate::family;
use crate::guard::Whose;
use crate::pattern;
use crate::report::{Finding, Mistake};
use crate::sample::PACED_MAPPED;
use crate::setting::{AUDIT, GUARD, MISMATCH, POISON, SAMPLED, UNMAP, VERIFY};
use crate::table::{Buffer, Event, Kind, State, Then};
use crate::{Kit, Process};
use core::ptr::null_mut;
use craton_base::{Clock, Platform};
use craton_heap::hooks::Hooks;
use craton_heap::{Heap, Misuse};
use craton_os::{precise_ns, processor_ns};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Target(pub(crate) u16);

impl Target {
    pub const MALLOC: Self = Self(0);

    /// `id`: below 2¹⁶ − 1.
    pub fn cache(id: u16) -> Self {
        Self(id + 1)
    }

    pub(crate) fn id(self) -> Option<u16> {
        self.0.checked_sub(1)
    }
}

impl<P: Process> Kit<P> {
    /// `place`: a sample's, for the stack.
    fn event(&self, checks: u16, place: Option<usize>) -> Event {
        if checks & (AUDIT | SAMPLED) == 0 {
            return Event::default();
        }
        let stack = match place {
            _ if !P::may_unwind() => 0,
            Some(place) if checks & SAMPLED != 0 => self.stacks.capture_at(place),
            _ => self.stacks.capture(),
        };
        Event { time_ns: precise_ns(), stack, thread: P::thread_id() }
    }

    fn log(&self, buffer: &Buffer, event: Event, action: Action) {
        if buffer.checks & AUDIT != 0
            && let Some(log) = self.setting.log()
        {
            let Event { time_ns, stack, thread } = event;
            log.add(Transaction { time_ns, address: buffer.address, size: buffer.size, stack, thread, action });
        }
    }

    #[inline]
    pub fn checks_of(&self, size: usize) -> u16 {
        if self.in_use() { self.setting.checks_of_size(size) } else { 0 }
    }

    /// Null: no memory.
    pub fn alloc<F: Platform, C: Clock, H: Hooks>(
        &self,
        heap: &Heap<F, C, H>,
        size: usize,
        align: usize,
        target: Target,
        checks: u16,
    ) -> Result<*mut u8, Finding> {
        self.alloc_by(heap, size, align, target, checks, family::ANY)
    }

    pub fn alloc_by<F: Platform, C: Clock, H: Hooks>(
        &self,
        heap: &Heap<F, C, H>,
        size: usize,
        align: usize,
        target: Target,
        checks: u16,
        family: u8,
    ) -> Result<*mut u8, Finding> {
        let Some(area) = self.alloc_area(heap, size, align, checks)? else { return Ok(null_mut()) };
        self.table.prefetch(area.address);
        let taken = self.event(checks, self.guards.place_of(area.under, area.kind).map(|place| 2 * place));
        let buffer = Buffer {
            address: area.address,
            size,
            under: area.under,
            checks,
            state: State::Live,
            kind: area.kind,
            align: align.max(1).trailing_zeros() as u8,
            family: if checks & MISMATCH != 0 && family != family::TRUSTED { family } else { family::ANY },
            target: target.0,
            taken,
            given: Event::default(),
        };
        // SAFETY: unused until returned.
        unsafe {
            area::write_redzones(&buffer, self.secret());
            if checks & POISON != 0 {
                pattern::fill(area.address as *mut u8, size, pattern::FRESH);
            }
        }
        if !self.table.insert(buffer) {
            self.free_area(heap, &buffer);
            return Ok(null_mut());
        }
        self.watch(&buffer);
        self.log(&buffer, taken, Action::Alloc);
        if buffer.kind != Kind::Heap {
            // The heap counts its own objects.
            P::count_served();
        }
        Ok(area.address as *mut u8)
    }

    pub fn alloc_sample<F: Platform, C: Clock, H: Hooks>(
        &self,
        heap: &Heap<F, C, H>,
        class: usize,
        size: usize,
        align: usize,
    ) -> Result<*mut u8, Finding> {
        if !self.sample.begin(class) {
            return Ok(null_mut());
        }
        let began_ns = processor_ns();
        let sample = self.alloc(heap, size, align, Target::MALLOC, SAMPLED | VERIFY)?;
        if !sample.is_null() {
            self.sample.count(size, began_ns);
        }
        Ok(sample)
    }

    /// Returns whether the next allocation becomes a sample.
    pub fn count_reuse(&self, class: usize, allocations: u32) -> bool {
        self.sample.reused(class, allocations)
    }

    pub fn skip_sample(&self, class: usize) {
        self.sample.begin(class);
    }

    #[inline]
    pub fn is_sample_due(&self, class: usize) -> bool {
        self.sample.is_due(class)
    }

    /// Returns how many of `want` objects may leave the slabs at once.
    #[inline]
    pub fn bound(&self, class: usize, want: u32) -> u32 {
        self.sample.bound(class, want)
    }

    fn whose(&self) -> Whose {
        match () {
            () if self.setting.guards() => Whose::Option,
            () if self.sample.is_asked() => Whose::Sample,
            () => Whose::Paced,
        }
    }

    fn alloc_area<F: Platform, C: Clock, H: Hooks>(
        &self,
        heap: &Heap<F, C, H>,
        size: usize,
        align: usize,
        checks: u16,
    ) -> Result<Option<Area>, Finding> {
        if checks & (GUARD | SAMPLED) != 0
            && let Some(taken) = self.guards.alloc(size, align.max(area::UNIT), self.whose())
        {
            if let Some(soon) = taken.soon {
                self.table.prefetch(soon);
            }
            if let Some(before) = taken.before {
                self.forget(before)?;
            }
            return Ok(Some(taken.area));
        }
        if checks & SAMPLED != 0 {
            return Ok(None);
        }
        let Some(around) = area::around(size, align) else { return Ok(None) };
        let under = match area::object_for(size, align, around) {
            (Some(class), _) => heap.take_one(class),
            (None, total) => heap.allocate_large(total, align, false),
        };
        let (under, front) = (under as usize, around.0);
        Ok((under != 0).then_some(Area { under, address: under + front, kind: Kind::Heap }))
    }

    /// `false`: no buffer.
    /// # Safety
    /// The caller gives the memory up, if a buffer.
    pub unsafe fn free<F: Platform, C: Clock, H: Hooks>(
        &self,
        heap: &Heap<F, C, H>,
        pointer: *mut u8,
        target: Target,
    ) -> Result<bool, Finding> {
        let address = pointer as usize;
        self.table.prefetch(address);
        // Captures the stack while the record comes, where all buffers are audited.
        let (checks, place) = match self.setting.checks_of_class(0) {
            checks if checks & AUDIT != 0 => (checks, None),
            _ => match self.table.get(address) {
                // Keeps the first free's stack.
                Some(buffer) if buffer.state != State::Live => (0, None),
                Some(buffer) => {
                    (buffer.checks, self.guards.place_of(buffer.under, buffer.kind).map(|place| 2 * place + 1))
                }
                None => return Ok(false),
            },
        };
        let given = self.event(checks, place);
        let found = self.table.with(address, |b| {
            let was = *b;
            if was.state == State::Live && was.target == target.0 {
                (b.state, b.given) = (State::Freeing, given);
            }
            (was, Then::Keep)
        });
        let Some(buffer) = found else { return Ok(false) };
        self.watches.leave(address);
        self.check_owner(&buffer, target)?;
        let buffer = Buffer { given, ..buffer };
        self.log(&buffer, given, Action::Free);
        let closed = buffer.checks & (UNMAP | SAMPLED) != 0 && buffer.kind != Kind::Heap && self.guards.close(&buffer);
        if !closed && buffer.checks & POISON != 0 {
            // SAFETY: the program gave the buffer up.
            unsafe { pattern::fill(pointer, buffer.size, pattern::FREED) };
        }
        self.table.with(address, |b| {
            b.state = if closed { State::Closed } else { State::Freed };
            ((), Then::Keep)
        });
        if buffer.kind == Kind::Slot {
            self.guards.free_slot(&buffer, !closed);
            return Ok(true);
        }
        // Closed pages may be out of memory; their address space waits.
        let soon = |address| self.table.prefetch(address);
        self.quarantine.wait(address, self.weight(&buffer), soon, |address| {
            if let Some(buffer) = self.forget(address)? {
                self.free_area(heap, &buffer);
            }
            Ok(())
        })?;
        Ok(true)
    }

    fn weight(&self, buffer: &Buffer) -> usize {
        // At most half of the mapped samples wait.
        let is_paced = buffer.checks & SAMPLED != 0 && self.whose() == Whose::Paced;
        let least = if is_paced { self.quarantine.limit() / (PACED_MAPPED / 2) } else { 0 };
        least.max(buffer.size + 128)
    }

    /// A finding if the buffer was written while it waited.
    fn forget(&self, address: usize) -> Result<Option<Buffer>, Finding> {
        let Some(buffer) = self.table.with(address, |b| (*b, Then::Remove)) else { return Ok(None) };
        self.check_freed(&buffer, "alloc")?;
        Ok(Some(buffer))
    }

    fn free_area<F: Platform, C: Clock, H: Hooks>(&self, heap: &Heap<F, C, H>, buffer: &Buffer) {
        match buffer.kind {
            Kind::Heap => {
                // SAFETY: the kit's object; its buffer is gone.
                let freed = unsafe { heap.take_back(None, buffer.under as *mut u8) };
                debug_assert_eq!(freed, Ok(None));
            }
            Kind::Slot => self.guards.free_slot(buffer, true),
            Kind::Mapped => self.guards.free_mapped(buffer),
        }
    }

    /// Returns the first finding, or the number of buffers.
    pub fn check_all(&self, found_by: &'static str) -> Result<usize, Finding> {
        self.check_where(found_by, |_| true, |_| {})
    }

    /// Checks when a forked process ends; its parent checks what waited at the fork.
    pub(crate) fn check_own(&self, found_by: &'static str) -> Result<usize, Finding> {
        let is_ringed = |buffer: &Buffer| buffer.state == State::Freed && buffer.kind != Kind::Slot;
        self.check_where(
            found_by,
            |buffer| !is_ringed(buffer),
            |check| {
                self.quarantine.each_own(|address| {
                    self.table.with(address, |buffer| (check(buffer), Then::Keep));
                });
            },
        )
    }

    fn check_where(
        &self,
        found_by: &'static str,
        wanted: impl Fn(&Buffer) -> bool,
        others: impl FnOnce(&mut dyn FnMut(&Buffer)),
    ) -> Result<usize, Finding> {
        let (mut buffers, mut bad) = (0, None);
        let mut check = |buffer: &Buffer| {
            if bad.is_none() && self.is_written(buffer) {
                bad = Some(*buffer);
            }
        };
        self.table.each(|buffer| {
            buffers += 1;
            if wanted(buffer) {
                check(buffer);
            }
        });
        others(&mut check);
        // Outside of the lock: the report searches for neighbours.
        if let Some(buffer) = bad {
            self.check_freed(&buffer, found_by)?;
            self.check_around(&buffer, found_by)?;
        }
        Ok(buffers)
    }

    /// `None`: no buffer of malloc's.
    pub fn size_for(&self, call: &'static str, pointer: *mut u8) -> Result<Option<usize>, Finding> {
        let Some(buffer) = self.table.get(pointer as usize) else { return Ok(None) };
        if buffer.state != State::Live {
            return Err(Finding { mistake: Mistake::UsedFree { call }, buffer });
        }
        if buffer.target != Target::MALLOC.0 {
            return Err(Finding { mistake: Mistake::WrongCache { given: Target::MALLOC }, buffer });
        }
        family::check(&buffer, call, false)?;
        Ok(Some(buffer.size))
    }

    /// A finding if the buffer is free, another's, or overwritten.
    pub fn is_buffer_of(&self, pointer: *mut u8, target: Target) -> Result<bool, Finding> {
        match self.table.get(pointer as usize) {
            None => Ok(false),
            Some(buffer) => self.check_owner(&buffer, target).map(|()| true),
        }
    }

    pub fn check_claim(&self, pointer: *mut u8, size: Option<usize>, align: usize) -> Result<bool, Finding> {
        let Some(buffer) = self.table.get(pointer as usize) else { return Ok(false) };
        if buffer.state != State::Live {
            return Err(Finding { mistake: Mistake::DoubleFree, buffer });
        }
        if size.is_some_and(|size| size != buffer.size) || !(pointer as usize).is_multiple_of(align.max(1)) {
            let mistake = Mistake::Claimed { size: size.unwrap_or(buffer.size), align };
            return Err(Finding { mistake, buffer });
        }
        Ok(true)
    }

    pub fn report_live(&self, target: Target, call: &'static str) {
        const MOST: usize = 20;
        let (mut count, mut some) = (0, [Buffer::default(); MOST]);
        self.table.each(|buffer| {
            if buffer.target == target.0 && buffer.state == State::Live {
                if count < MOST {
                    some[count] = *buffer;
                }
                count += 1;
            }
        });
        self.report_out(call, target, count, &some[..count.min(MOST)]);
    }

    /// Ends the process, unless a handle is at fault.
    pub fn report_misuse(&self, call: &'static str, pointer: *mut u8, misuse: Misuse) {
        use Misuse::{CacheDestroyed, HeapDestroyed, HeapStays, NoCache, NoHeap};
        if matches!(misuse, CacheDestroyed | HeapDestroyed | HeapStays | NoCache | NoHeap) {
            return;
        }
        if let Some(finding) = self.freed_earlier(pointer as usize).or_else(|| self.find_place(call, pointer as usize))
        {
            self.end(finding);
        }
        if self.setting.verifies() {
            self.end_bad_pointer(call, pointer as usize, misuse);
        }
    }

    pub(crate) fn find_place(&self, call: &'static str, address: usize) -> Option<Finding> {
        let around = |b: &Buffer| (b.address.min(b.under)..b.address + b.size.max(1) + area::UNIT).contains(&address);
        let buffer = self.table.find_where(around)?;
        let mistake = match address as isize - buffer.address as isize {
            0 if buffer.state == State::Live => Mistake::Elsewhere { call },
            0 => Mistake::UsedFree { call },
            offset => Mistake::Inside { call, offset },
        };
        Some(Finding { mistake, buffer })
    }

    fn check_owner(&self, buffer: &Buffer, target: Target) -> Result<(), Finding> {
        if buffer.state != State::Live {
            return Err(Finding { mistake: Mistake::DoubleFree, buffer: *buffer });
        }
        if buffer.target != target.0 {
            return Err(Finding { mistake: Mistake::WrongCache { given: target }, buffer: *buffer });
        }
        self.check_around(buffer, "free")
    }

    fn check_around(&self, buffer: &Buffer, found_by: &'static str) -> Result<(), Finding> {
        // SAFETY: a live buffer and its redzones can be read.
        match unsafe { area::check_redzones(buffer, self.secret()) } {
            None => Ok(()),
            Some((offset, wrong)) => {
                Err(Finding { mistake: Mistake::Written { offset, wrong, found_by }, buffer: *buffer })
            }
        }
    }

    fn check_freed(&self, buffer: &Buffer, found_by: &'static str) -> Result<(), Finding> {
        if buffer.state == State::Freed && buffer.checks & POISON != 0 {
            // SAFETY: a waiting buffer can be read unless closed.
            let wrong = unsafe { pattern::check(buffer.address as *const u8, buffer.size, pattern::FREED) };
            if let Some(wrong) = wrong {
                return Err(Finding { mistake: Mistake::WrittenFree { wrong, found_by }, buffer: *buffer });
            }
            self.check_around(buffer, found_by)?;
        }
        Ok(())
    }

    /// The record's lock is held: the buffer stays.
    fn is_written(&self, buffer: &Buffer) -> bool {
        // SAFETY: buffers that are not closed can be read.
        unsafe {
            match buffer.state {
                State::Live => area::check_redzones(buffer, self.secret()).is_some(),
                State::Freed if buffer.checks & POISON != 0 => {
                    pattern::check(buffer.address as *const u8, buffer.size, pattern::FREED).is_some()
                        || area::check_redzones(buffer, self.secret()).is_some()
                }
                _ => false,
            }
        }
    }
}
