//! The machine's memory as a zone, whose metadata lies in its own frames.

use super::machine;
use super::serial::fail;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};
use craton_frames::{Config, Error, Init, Kind, Metadata, Request, Seat, Zone};
use craton_kernel::memory::FRAME;
use craton_kernel::paging::{PageTables, Size, Table, TableFrames};
use craton_kernel::plan::{Offsets, Plan};

const GIB: u64 = 1 << 30;
const MAPPED_AT_START: u64 = 4 * GIB;
/// GiB above the first four that pages of 2 MiB can map before there are frames for tables.
const MORE: usize = 60;

unsafe extern "C" {
    static boot_pdpt: Table;
}

#[repr(C, align(4096))]
struct Tables([Table; MORE]);

static TABLES: Tables = Tables([const { [const { AtomicU64::new(0) }; 512] }; MORE]);

/// On the tables in use; returns where it stopped.
pub fn map_to_itself(end: u64) -> u64 {
    const LEAF: u64 = 0x83;
    let has_giant = machine::has_giant_pages();
    let most = if has_giant { 512 } else { 4 + MORE as u64 };
    let gibs = end.div_ceil(GIB).min(most);
    // SAFETY: a table of the image, which the CPU reads: atomic words.
    let gib_entries = unsafe { &boot_pdpt };
    for gib in MAPPED_AT_START / GIB..gibs {
        let entry = if has_giant {
            (gib * GIB) | LEAF
        } else {
            let table = &TABLES.0[gib as usize - 4];
            for (i, entry) in table.iter().enumerate() {
                entry.store((gib * GIB + ((i as u64) << 21)) | LEAF, Ordering::Relaxed);
            }
            table.as_ptr() as u64 | 3
        };
        // ORDERING: pairs with the processor's walk: the table is filled before it is named.
        gib_entries[gib as usize].store(entry, Ordering::Release);
    }
    gibs.max(4) * GIB
}

pub struct Memory {
    pub plan: Plan,
    pub zone: Zone<'static>,
}

impl Memory {
    pub fn new(plan: Plan, cpus: usize) -> Result<Self, Error> {
        let at = plan.metadata.begin as *mut u8;
        // SAFETY: usable memory, mapped to itself, that nothing else uses (`Plan::free` lacks it).
        unsafe { at.write_bytes(0, plan.metadata.bytes() as usize) };
        let (sizes, offsets) = (plan.sizes, Offsets::of(&plan.sizes));
        /// # Safety
        /// `len` elements, all zero, are there for ever.
        unsafe fn array<T>(at: *mut u8, offset: u64, len: usize) -> &'static [T] {
            // SAFETY: by the contract.
            unsafe { core::slice::from_raw_parts(at.add(offset as usize).cast(), len) }
        }
        // SAFETY: the arrays lie apart in zeroed memory; all are atomic words.
        let metadata = unsafe {
            Metadata {
                rows: array(at, offsets.rows, sizes.rows),
                children: array(at, offsets.children, sizes.children),
                trees: array(at, offsets.trees, sizes.trees),
                index: array(at, offsets.index, sizes.index),
                locals: array(at, offsets.locals, sizes.locals),
            }
        };
        let zone = Zone::new(plan.frames, metadata, Init::Allocated, Config::new(cpus))?;
        for range in plan.free.ranges() {
            zone.unreserve(plan.frame_of(range.begin), range.frames())?;
        }
        Ok(Self { plan, zone })
    }

    /// Memory is mapped to itself.
    pub fn pointer(&self, frame: usize) -> *mut u8 {
        self.plan.address_of(frame) as *mut u8
    }

    pub fn seat(&self, cpu: usize) -> Seat<'_, 'static> {
        Seat::new(&self.zone, cpu).unwrap_or_else(|error| fail!("CPU {cpu}: {error}"))
    }

    pub fn check(&self, cpus: usize, held: usize, after: &str) {
        for cpu in 0..cpus {
            if let Err(error) = self.zone.drain(cpu) {
                fail!("after {after}: CPU {cpu}: {error}");
            }
        }
        if let Err(broken) = self.zone.check() {
            fail!("after {after}: the zone is broken: {broken:?}");
        }
        let (free, expected) = (self.zone.free_frames(), self.plan.free.frames() - held);
        if free != expected {
            fail!("after {after}: {free} frames are free, and {expected} should be");
        }
    }

    /// All memory, and the devices below 4 GiB, to itself.
    pub fn own_tables(&self) -> PageTables<'_, Self> {
        let tables = PageTables::new(self).unwrap_or_else(|| fail!("no frame for a page table"));
        let end = self.plan.address_of(self.plan.frames).max(MAPPED_AT_START);
        let size = if machine::has_giant_pages() { Size::Giant } else { Size::Huge };
        for at in (0..end.div_ceil(size.bytes())).map(|i| i * size.bytes()) {
            if let Err(refused) = tables.map(at, at, size) {
                fail!("page tables of all memory: {refused}");
            }
        }
        tables
    }
}

const FOR_TABLES: Request = Request { order: 0, kind: Kind::Unmovable, processor: 0 };

impl TableFrames for Memory {
    fn get(&self) -> Option<u64> {
        self.zone.get(FOR_TABLES).ok().map(|frame| self.plan.address_of(frame))
    }

    fn put(&self, address: u64) {
        if let Err(error) = self.zone.put(self.plan.frame_of(address), FOR_TABLES) {
            fail!("the table at {address:#x} cannot be freed: {error}");
        }
    }

    fn table(&self, address: u64) -> &Table {
        debug_assert!(address.is_multiple_of(FRAME));
        // SAFETY: a whole frame of `get`, mapped to itself: atomic words with any contents.
        unsafe { NonNull::new_unchecked(address as *mut Table).as_ref() }
    }
}
