//! A small page heap (TEMERAIRE) on frames. Its floor is a window that page faults of the first CPU
//! fill: with 4 KiB, or 2 MiB where the heap advised it.

use super::checks::Random;
use super::machine::{forget_translation, ticks};
use super::physical::Memory;
use super::serial::{fail, report};
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use craton_base::{
    Advice, Ask, Clock, CollapseError, Density, Floor, HugePages, NoMemory, PageRange, Pages, Residency, Span,
    SpanSource, Table,
};
use craton_frames::{Kind, Request};
use craton_kernel::memory::FRAME;
use craton_kernel::paging::{PageTables, Size};
use craton_pages::{Breaking, HugeBacking, PageHeapExt, Temeraire, Tracker};
use craton_slab::object::{ObjectLayout, ObjectSlabs, SpanPages};

const AT: u64 = 0x6000_0000_0000;
/// 64 MiB, if the machine has four times that.
const CAPACITY: u32 = 32;
const SPANS: usize = 64;
const TURNS: usize = 3_000;
const LONGEST: usize = 300;
const PAGE: u64 = 8192;
const HUGE: u64 = 2 << 20;
const FRAMES_OF_HUGE: u64 = HUGE / FRAME;

const SMALL: Request = Request { order: 0, kind: Kind::Movable, processor: 0 };
const LARGE: Request = Request { order: 9, kind: Kind::Movable, processor: 0 };

struct Window<'a> {
    memory: &'a Memory,
    tables: &'a PageTables<'a, Memory>,
    /// Bytes that may be touched.
    granted: AtomicU64,
    /// A bit for each hugepage.
    advised: AtomicU64,
    faults: [AtomicU64; 2],
}

static WINDOW: AtomicPtr<Window<'static>> = AtomicPtr::new(core::ptr::null_mut());

pub fn back(address: u64) -> bool {
    // ORDERING: pairs with the release in `run`: the window is whole before it is named.
    let window = WINDOW.load(Ordering::Acquire);
    if window.is_null() {
        return false;
    }
    // SAFETY: it lives while it is named here.
    let window = unsafe { &*window };
    let inside = address.wrapping_sub(AT);
    if inside >= window.granted.load(Ordering::Relaxed) {
        return false;
    }
    let huge = AT + inside / HUGE * HUGE;
    let is_advised = window.advised.load(Ordering::Relaxed) >> (inside / HUGE) & 1 != 0;
    let is_huge = is_advised && window.map_fresh(huge, Size::Huge, LARGE);
    if !is_huge && !window.map_fresh(address / FRAME * FRAME, Size::Frame, SMALL) {
        fail!("no frame for the page heap at {address:#x}");
    }
    window.faults[usize::from(is_huge)].fetch_add(1, Ordering::Relaxed);
    true
}

impl Window<'_> {
    /// Zeroed. `false`: no frames, or smaller pages are there.
    fn map_fresh(&self, at: u64, size: Size, request: Request) -> bool {
        let Ok(frame) = self.memory.zone.get(request) else { return false };
        // SAFETY: the frames are held, mapped to themselves.
        unsafe { self.memory.pointer(frame).write_bytes(0, size.bytes() as usize) };
        let is_mapped = self.tables.map(at, self.memory.plan.address_of(frame), size).is_ok();
        if !is_mapped {
            self.put(frame, request);
        }
        is_mapped
    }

    fn put(&self, frame: usize, request: Request) {
        if let Err(error) = self.memory.zone.put(frame, request) {
            fail!("a frame of the page heap: {error}");
        }
    }

    fn drop_range(&self, begin: u64, end: u64) {
        let mut at = begin;
        while at < end {
            let huge = at / HUGE * HUGE;
            if let Ok(to) = self.tables.unmap(huge, Size::Huge) {
                forget_translation(huge);
                let frame = self.memory.plan.frame_of(to);
                if at == huge && end >= huge + HUGE {
                    self.put(frame, LARGE);
                } else {
                    self.split(huge, to);
                    continue;
                }
                at = huge + HUGE;
                continue;
            }
            if let Ok(to) = self.tables.unmap(at, Size::Frame) {
                forget_translation(at);
                self.put(self.memory.plan.frame_of(to), SMALL);
            }
            at += FRAME;
        }
    }

    fn split(&self, huge: u64, to: u64) {
        for part in (0..FRAMES_OF_HUGE).map(|i| i * FRAME) {
            if let Err(refused) = self.tables.map(huge + part, to + part, Size::Frame) {
                fail!("splitting a huge page: {refused}");
            }
        }
    }
}

#[derive(Clone, Copy)]
struct KernelFloor<'a>(&'a Window<'a>);

fn bytes_of(range: PageRange) -> (u64, u64) {
    let begin = AT + u64::from(range.first.0) * PAGE;
    (begin, begin + u64::from(range.len.0) * PAGE)
}

impl Floor for KernelFloor<'_> {
    fn reserve(&mut self, total: HugePages) -> Result<(), NoMemory> {
        self.0.granted.store(u64::from(total.0) * HUGE, Ordering::Relaxed);
        Ok(())
    }

    /// The first touch does it.
    fn back(&mut self, _: PageRange) -> Result<(), NoMemory> {
        Ok(())
    }

    fn unback(&mut self, range: PageRange) -> Result<(), NoMemory> {
        let (begin, end) = bytes_of(range);
        self.0.drop_range(begin, end);
        Ok(())
    }

    fn collapse(&mut self, _: PageRange) -> Result<(), CollapseError> {
        Err(CollapseError::Unsupported)
    }

    fn advise(&mut self, range: PageRange, advice: Advice) -> bool {
        let (begin, end) = bytes_of(range);
        for huge in (begin - AT) / HUGE..(end - AT).div_ceil(HUGE) {
            match advice {
                Advice::Huge => self.0.advised.fetch_or(1 << huge, Ordering::Relaxed),
                Advice::Small => self.0.advised.fetch_and(!(1 << huge), Ordering::Relaxed),
            };
        }
        true
    }

    fn residency(&self, range: PageRange, _: Ask) -> Residency {
        let (begin, end) = bytes_of(range);
        let mapped = |at: &u64| self.0.tables.translate(*at).is_some();
        let resident = (begin..end).step_by(FRAME as usize).filter(mapped).count() * FRAME as usize;
        Residency { resident_bytes: resident, huge_bytes: None }
    }
}

struct Ticks;

impl Clock for Ticks {
    fn now_ns(&self) -> u64 {
        ticks()
    }
}

type Heap<'a> = Temeraire<KernelFloor<'a>, Ticks>;

pub fn run<'a>(memory: &'a Memory, tables: &'a PageTables<'a, Memory>, held: usize) {
    let free = memory.zone.free_frames() as u64;
    let capacity = (free / 4 / FRAMES_OF_HUGE).min(u64::from(CAPACITY)) as u32;
    if capacity < 2 {
        report!("heap", "hugepages": 0);
        return;
    }
    let window = Window {
        memory,
        tables,
        granted: AtomicU64::new(0),
        advised: AtomicU64::new(0),
        faults: [const { AtomicU64::new(0) }; 2],
    };
    // ORDERING: pairs with the acquire in `back`.
    WINDOW.store((&raw const window).cast_mut().cast(), Ordering::Release);
    // A tracker may be all zeros.
    let home = memory.zone.get(SMALL).unwrap_or_else(|error| fail!("trackers: {error}"));
    const { assert!(CAPACITY as usize * size_of::<Tracker>() <= FRAME as usize) };
    // SAFETY: a held frame, mapped to itself; trackers are valid as zeros.
    let trackers: Table<Tracker> = unsafe {
        memory.pointer(home).write_bytes(0, FRAME as usize);
        Table::new(memory.pointer(home).cast(), capacity as usize)
    };
    let mut heap: Heap<'_> =
        Temeraire::new(KernelFloor(&window), Ticks, trackers, HugePages(capacity), HugeBacking::ALWAYS);
    spans(&mut heap);
    objects(&mut heap);
    if let Err(broken) = heap.check() {
        fail!("the page heap is broken: {broken:?}");
    }
    let used = heap.granted();
    heap.release_all(Breaking::Always);
    window.drop_range(AT, AT + window.granted.load(Ordering::Relaxed));
    // The faults were this CPU's, so none still reads the window.
    WINDOW.store(core::ptr::null_mut(), Ordering::Relaxed);
    window.put(home, SMALL);
    memory.check(1, held, "a page heap");
    let [small, large] = window.faults.map(AtomicU64::into_inner);
    report!("heap", "hugepages": used.0, "faults_4_kib": small, "faults_2_mib": large);
}

fn spans(heap: &mut Heap<'_>) {
    let mut live: [Option<Span>; SPANS] = [None; SPANS];
    let mut random = Random::new(7);
    for _ in 0..TURNS {
        let i = random.below(SPANS);
        if let Some(span) = live[i].take() {
            free(heap, span, i as u64);
            continue;
        }
        let most = 1 + random.below(LONGEST);
        let pages = Pages(1 + random.below(most) as u32);
        let Ok(span) = heap.alloc(pages, Pages(1), Density::Sparse) else { continue };
        for at in pages_of(span) {
            // SAFETY: the span is ours; the first touch maps it.
            unsafe {
                if span.zeroed && at.read_volatile() != 0 {
                    fail!("a span that is said to be zero has {:#x}", at.read_volatile());
                }
                at.write_volatile(i as u64 + 1);
            }
        }
        live[i] = Some(span);
        if random.below(100) == 0 {
            heap.release_all(Breaking::Always);
        }
    }
    for (i, span) in live.into_iter().enumerate() {
        if let Some(span) = span {
            free(heap, span, i as u64);
        }
    }
}

fn pages_of(span: Span) -> impl Iterator<Item = *mut u64> {
    let (begin, end) = bytes_of(span.range);
    (begin..end).step_by(PAGE as usize).map(|at| at as *mut u64)
}

fn free(heap: &mut Heap<'_>, span: Span, i: u64) {
    for at in pages_of(span) {
        // SAFETY: the span is ours.
        let found = unsafe { at.read_volatile() };
        if found != i + 1 {
            fail!("a page of span {i} has {found:#x}");
        }
    }
    if let Err(error) = heap.free(span.range, Density::Sparse) {
        fail!("span {i}: {error}");
    }
}

fn objects(heap: &mut Heap<'_>) {
    let layout = ObjectLayout::of(200, 8, false).unwrap_or_else(|bad| fail!("objects of 200: {bad:?}"));
    let mut slabs = ObjectSlabs::new(layout);
    // SAFETY: the heap's spans are pages of the window.
    let mut supplier = unsafe { SpanPages::new(heap, AT as *mut u8, Density::Dense) };
    let mut live = [core::ptr::null_mut::<u8>(); 1000];
    for object in &mut live {
        // SAFETY: one supplier for all.
        let Some(taken) = (unsafe { slabs.alloc(&mut supplier) }) else { fail!("no object on the page heap") };
        *object = taken.object();
        // SAFETY: the object is ours.
        unsafe { object.write_bytes(1, 200) };
    }
    for object in live {
        // SAFETY: nothing uses it any more.
        if let Err(bad) = unsafe { slabs.free(object, false) } {
            fail!("an object on the page heap: {bad}");
        }
    }
    // SAFETY: as above.
    if unsafe { slabs.destroy(&mut supplier, |_| ()) }.is_err() {
        fail!("objects on the page heap are still out");
    }
}
