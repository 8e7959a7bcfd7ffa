//! A heap with caches and named heaps over a simulated floor.
//!
//! **Unsafe.** Plays the kit over the test's allocator.

use crate::caches::Caches;
use crate::ground::{Ground, ground};
use crate::heaps::{self, Heaps};
use crate::process::{Process, Watch, Words};
use core::cell::Cell;
use craton_base::Pages;
use craton_heap::hooks::NoHooks;
use craton_os::rseq::Rseq;
use craton_pages::PageHeapExt;
use craton_sim::{FaultPlan, RealFloor, VirtualClock};
use std::boxed::Box;
use std::collections::HashMap;
use std::sync::{Mutex, OnceLock};
use std::thread_local;

pub(crate) type TestHeap = craton_heap::Heap<RealFloor, VirtualClock, NoHooks>;

#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Asked {
    pub(crate) room: u32,
    pub(crate) much: u32,
    pub(crate) live: u32,
}

thread_local! {
    static WORDS: Cell<Words> = const { Cell::new(Words { arrays: Words::NOT_ASKED, building: 0 }) };
    static ASKED: Cell<Asked> = const { Cell::new(Asked { room: 0, much: 0, live: 0 }) };
    static INSIDE: Cell<u32> = const { Cell::new(0) };
}

static BUFFERS: Mutex<Option<HashMap<usize, (std::alloc::Layout, u16)>>> = Mutex::new(None);

pub(crate) fn asked() -> Asked {
    ASKED.get()
}

pub(crate) fn is_inside() -> bool {
    INSIDE.get() > 0
}

fn ask(change: impl FnOnce(&mut Asked)) {
    let mut asked = ASKED.get();
    change(&mut asked);
    ASKED.set(asked);
}

/// Has one thread's words, and the machine's restartable sequences.
pub(crate) struct Here;

pub(crate) struct Locked;

impl Process for Here {
    fn within<R>(part: impl FnOnce() -> R) -> R {
        INSIDE.set(INSIDE.get() + 1);
        let result = part();
        INSIDE.set(INSIDE.get() - 1);
        result
    }

    fn make_room() -> bool {
        ask(|asked| asked.room += 1);
        false
    }

    fn holds_much() {
        ask(|asked| asked.much += 1);
    }

    fn sequences(own: bool) -> Option<&'static Rseq> {
        static FOUND: OnceLock<Option<Rseq>> = OnceLock::new();
        let rseq = FOUND.get_or_init(Rseq::find).as_ref()?;
        (!own || rseq.is_registered()).then_some(rseq)
    }

    fn words() -> Words {
        WORDS.get()
    }

    fn set_words(words: Words) {
        WORDS.set(words);
    }
}

impl Process for Locked {
    fn within<R>(part: impl FnOnce() -> R) -> R {
        Here::within(part)
    }

    fn make_room() -> bool {
        Here::make_room()
    }

    fn words() -> Words {
        WORDS.get()
    }

    fn set_words(words: Words) {
        WORDS.set(words);
    }
}

impl Watch for Here {}

impl Watch for Locked {
    fn checks_of(name: &[u8]) -> u16 {
        name.starts_with(b"watched").into()
    }

    fn alloc(id: u16, size: usize, align: usize, _: u16) -> *mut u8 {
        let layout = std::alloc::Layout::from_size_align(size.max(1), align.max(1)).unwrap();
        // SAFETY: the layout has bytes.
        let buffer = unsafe { std::alloc::alloc(layout) };
        BUFFERS.lock().unwrap().get_or_insert_default().insert(buffer as usize, (layout, id));
        buffer
    }

    unsafe fn free(id: u16, buffer: *mut u8) {
        let (layout, its) = BUFFERS.lock().unwrap().get_or_insert_default().remove(&(buffer as usize)).unwrap();
        assert_eq!(its, id);
        // SAFETY: allocated above.
        unsafe { std::alloc::dealloc(buffer, layout) };
    }

    fn is_buffer(_: u16, object: *mut u8) -> bool {
        BUFFERS.lock().unwrap().get_or_insert_default().contains_key(&(object as usize))
    }

    fn report_live(_: u16) {
        ask(|asked| asked.live += 1);
    }
}

pub(crate) struct World<P: Process + Watch = Locked> {
    pub(crate) heap: &'static TestHeap,
    pub(crate) heaps: &'static Heaps,
    pub(crate) caches: &'static Caches<VirtualClock, P>,
    pub(crate) clock: VirtualClock,
    pub(crate) faults: FaultPlan,
}

pub(crate) fn world(hugepages: u32) -> World {
    world_in(hugepages)
}

pub(crate) fn world_in<P: Process + Watch>(hugepages: u32) -> World<P> {
    // The thread may have used another world's arrays.
    P::set_words(Words::default());
    let Ground { heap, faults, clock, .. } = ground(hugepages, 1);
    let caches = Box::leak(Box::new(Caches::new(clock.clone())));
    World { heap, heaps: Box::leak(Box::new(Heaps::new())), caches, clock, faults }
}

impl<P: Process + Watch> World<P> {
    pub(crate) fn own(&self) -> heaps::Over<'static, RealFloor, VirtualClock, NoHooks> {
        self.heaps.over(self.heap)
    }

    pub(crate) fn cached(&self) -> crate::caches::Over<'static, RealFloor, VirtualClock, NoHooks, P> {
        self.caches.over(self.heap)
    }

    pub(crate) fn pages_in_use(&self) -> Pages {
        let pages = self.heap.pages();
        pages.check().unwrap();
        pages.in_use()
    }
}
