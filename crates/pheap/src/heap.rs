//! The heap. Locks are taken in this order: advance, lane, arena, extents.

use crate::arena::Arena;
use crate::class::{CLASSES, Class};
use crate::collect::{Conservative, Trace};
use crate::config::{Config, FRAMES_MOST, Model, Options};
use crate::error::Error;
use crate::extents::{Extent, ExtentKind};
use crate::lane::header::Header;
use crate::lane::{Lane, SPARE};
use crate::layout::{BOOK, BOOK_BYTES, LANES, OFFSET_BITS, PAGE, Places, ROOTS, ROOTS_END, STATES, SUPER};
use crate::record::{self, Record};
use crate::recover::{self, Report};
use crate::seat::Seats;
use crate::slab::{self, FoundSlab};
use crate::state::{Phase, State, Super, clear};
use crate::sync::{Mutex, MutexGuard};
use crate::tx;
use crate::units::{Tag, Units};
use craton_base::atomic::{AtomicU64, Ordering};
use craton_base::{LINE_BYTES, Medium, Space};
use std::sync::{Arc, PoisonError};

/// A word of a root or an object that holds an object's offset, or 0. Its line must be durable
/// before the heap first changes it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Slot(pub u64);

/// Where an object begins, in bytes of the medium.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Offset(pub u64);

/// A crash-consistent heap in a medium.
pub struct Heap<M> {
    pub(crate) medium: M,
    pub(crate) sup: Super,
    pub(crate) seed: u64,
    pub(crate) places: Places,
    /// Where they end.
    pub(crate) data: u64,
    pub(crate) classes: Box<[Class; CLASSES]>,
    pub(crate) lanes: Box<[Lane]>,
    pub(crate) seats: Arc<Seats>,
    pub(crate) units: Units,
    pub(crate) arenas: Box<[Mutex<Arena>]>,
    pub(crate) extents: Record,
    epoch: AtomicU64,
    /// Held in [`Heap::advance`].
    state: Mutex<State>,
    pub(crate) settled: AtomicU64,
    counter: AtomicU64,
    generation: AtomicU64,
    pub(crate) options: Options,
    pub(crate) roots: Mutex<()>,
    now_ms: AtomicU64,
    /// Lanes without a transaction, and the next transaction's number.
    pub(crate) no_tx: Mutex<(Vec<u32>, u64)>,
    /// By arena, the state in which no slab could change its class.
    pub(crate) morphing: Mutex<Vec<(u64, u64)>>,
}

/// That are worth a thread at `open`.
const SLABS_A_THREAD: usize = 128;

pub(crate) struct Guard<'a> {
    pub lane: &'a Lane,
    pub index: u32,
    locked: bool,
    pub roomy: bool,
}

impl Drop for Guard<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.locked {
            self.lane.unlock();
        }
    }
}

impl<M: Medium + Space> Heap<M> {
    /// Ignores the medium's contents.
    pub fn create(medium: M, config: Config, options: Options) -> Result<Self, Error> {
        let frames_end = if config.model == Model::Frames { medium.limit().min(FRAMES_MOST) } else { 0 };
        let config = Config { most: if config.most == 0 { frames_end } else { config.most }, ..config };
        config.check(medium.limit())?;
        let sup = Super::of(&config);
        let places = sup.places();
        // After a crash the old superblock must not stand over new parts.
        if medium.len() > SUPER {
            clear(&medium, SUPER, SUPER + LINE_BYTES);
            medium.fence();
        }
        let old_len = medium.len();
        record::begin(&medium, &sup)?;
        clear(&medium, STATES[0], STATES[1] + LINE_BYTES);
        clear(&medium, BOOK, BOOK + BOOK_BYTES);
        clear(&medium, ROOTS, ROOTS_END);
        // New bytes are zero: rings that no thread uses take no memory.
        let rings = places.ring(places.lanes).min(old_len.max(places.ring(0)));
        clear(&medium, LANES, rings);
        medium.fence();
        let mut state = State { settled: 0, generation: 1, phase: Phase::Running, sequence: 0 };
        state.write(&medium, sup.seed());
        let extents = Record::create(&medium, &sup, &options)?;
        let heap = Self::new(medium, sup, state, options, extents);
        heap.sup.write(&heap.medium);
        Ok(heap)
    }

    /// Repairs the heap after a crash. Refuses a damaged one.
    pub fn open(medium: M, options: Options) -> Result<(Self, Report), Error> {
        Self::open_traced(medium, options, &Conservative)
    }

    /// [`open`](Self::open); `trace` finds reached objects after a crash of a heap without logs.
    pub fn open_traced(medium: M, options: Options, trace: &dyn Trace<M>) -> Result<(Self, Report), Error> {
        let sup = Super::read(&medium)?;
        let mut state = State::read(&medium, sup.seed())?;
        let mut report = Report { clean: state.phase == Phase::Closed, ..Report::default() };
        if !report.clean {
            recover::redo(&medium, &sup, &mut state, &mut report)?;
            report.undone = tx::undo(&medium, &sup)?;
        }
        (0..sup.lanes).try_for_each(|lane| {
            Header { medium: &medium, seed: sup.seed(), at: sup.places().lane_header(lane) }.check()
        })?;
        let (extents, freed) = Record::open(&medium, &sup, &options, !report.clean)?;
        report.pages = freed;
        let mut heap = Self::new(medium, sup, state, options, extents);
        heap.adopt_slabs(&mut report)?;
        if !report.clean && sup.model == Model::Gc {
            heap.collect_after_crash(trace, &mut report)?;
        }
        state.generation += 1;
        state.phase = Phase::Running;
        state.write(&heap.medium, heap.seed);
        report.generation = state.generation;
        heap.generation.store(state.generation, Ordering::Relaxed);
        heap.no_tx.get_mut().unwrap_or_else(PoisonError::into_inner).1 = state.generation << 32;
        *heap.state.get_mut().unwrap_or_else(PoisonError::into_inner) = state;
        Ok((heap, report))
    }

    fn new(medium: M, sup: Super, state: State, options: Options, extents: Record) -> Self {
        let (places, seed) = (sup.places(), sup.seed());
        // Without write-back each line is settled at once.
        let epoch = if M::FLUSHES { state.settled + 1 } else { 0 };
        extents.begin_epoch(epoch);
        if sup.most != 0 {
            extents.limit_to(sup.most);
        }
        extents.settled(if M::FLUSHES { state.settled } else { 0 });
        let hosts = sup.model.is_logged() && options.morph != 0;
        Self {
            lanes: (0..sup.lanes).map(|lane| Lane::new(lane, places, seed, M::FLUSHES, options.eager)).collect(),
            seats: Seats::new(sup.lanes),
            classes: Box::new(std::array::from_fn(|class| Class::new(class, sup.stripes))),
            units: Units::new(medium.limit().min(1 << OFFSET_BITS)),
            arenas: (0..options.arenas()).map(|_| Mutex::new(Arena::new(hosts))).collect(),
            extents,
            epoch: AtomicU64::new(epoch),
            settled: AtomicU64::new(state.settled),
            state: Mutex::new(state),
            counter: AtomicU64::new(1),
            generation: AtomicU64::new(state.generation),
            roots: Mutex::new(()),
            now_ms: AtomicU64::new(0),
            no_tx: Mutex::new(((0..sup.lanes).rev().collect(), state.generation << 32)),
            morphing: Mutex::new(vec![(u64::MAX, 0); options.arenas()]),
            medium,
            sup,
            seed,
            places,
            data: places.data(),
            options,
        }
    }

    fn adopt_slabs(&mut self, report: &mut Report) -> Result<(), Error> {
        let extents = self.extents.list(&self.medium);
        let is_slab = |extent: &&Extent| extent.kind == ExtentKind::Slab;
        let slabs: Vec<u64> = extents.iter().filter(is_slab).map(|extent| extent.page * PAGE).collect();
        report.large = (extents.len() - slabs.len()) as u64;
        for FoundSlab { at, header, taken, free, guests } in self.read_slabs(&slabs)? {
            let objects = self.classes[header.class].objects;
            let number = (report.slabs % self.arenas.len() as u64) as usize;
            let arena = self.arenas[number].get_mut().unwrap_or_else(PoisonError::into_inner);
            let index = arena.insert(at, header.class, taken, free);
            // How full it was is unknown.
            arena.slabs[index].least_free = 0;
            report.slabs += 1;
            report.small += u64::from(objects - free);
            let old = crate::morph::adopt(&self.medium, &self.classes, &mut arena.slabs[index], &header)?;
            report.small += old + guests.len() as u64;
            if !arena.slabs[index].adopt_guests(&self.classes[header.class], guests) {
                return Err(Error::Damaged { what: "NG1: guests of a slab", at });
            }
            arena.relist_found(index, &self.classes[header.class]);
            let mixed = old > 0;
            let fine = Tag::is_fine(header.class) || header.old.is_some_and(|(old, _)| Tag::is_fine(old));
            let tag = Tag { class: header.class, arena: number, slab: index, mixed, frozen: false, fine };
            self.units.set(at, Some(tag));
        }
        Ok(())
    }

    /// On several threads: most of the time goes to mapping pages.
    fn read_slabs(&self, slabs: &[u64]) -> Result<Vec<FoundSlab>, Error> {
        let unused = self.classes.each_ref().map(slab::unused_bits);
        let logged = self.sup.model.is_logged();
        let read = |slabs: &[u64]| {
            let read = |at: &u64| FoundSlab::read(&self.medium, self.seed, *at, &self.classes, &unused, logged);
            slabs.iter().map(read).collect::<Result<Vec<_>, _>>()
        };
        let part = slabs.len().div_ceil(self.options.markers()).max(SLABS_A_THREAD);
        if slabs.len() <= part {
            return read(slabs);
        }
        let (mine, others) = slabs.split_at(part);
        std::thread::scope(|scope| {
            let threads: Vec<_> = others.chunks(part).map(|slabs| scope.spawn(move || read(slabs))).collect();
            let mut all = read(mine)?;
            all.reserve(others.len());
            for thread in threads {
                all.extend(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
            }
            Ok(all)
        })
    }

    /// Small objects.
    pub(crate) fn reserved(&self) -> u64 {
        self.lanes.iter().fold(0, |sum, lane| sum.wrapping_add(lane.reserved()))
    }

    /// Makes the next `open` fast.
    pub fn close(self) -> M {
        if self.sup.model == Model::Gc {
            self.write_bits();
        }
        self.settle();
        self.extents.cut_kept(&self.medium, self.now_ms.load(Ordering::Relaxed));
        self.extents.close(&self.medium);
        let mut state = self.lock_state();
        state.phase = Phase::Closed;
        state.write(&self.medium, self.seed);
        drop(state);
        self.medium
    }

    /// Makes all changes of slots durable, also the application's: recovery never redoes older ones
    /// over them.
    pub fn settle(&self) {
        if M::FLUSHES {
            let epoch = self.epoch.load(Ordering::Relaxed);
            // An epoch is settled when the one after it ends.
            self.advance(epoch);
            self.advance(epoch + 1);
        }
    }

    fn lock_state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends an epoch, and settles the one before it. Most of that one's homes are durable already,
    /// written back by the threads that stored them: one thread for all would be the limit.
    #[cold]
    pub(crate) fn advance(&self, epoch: u64) {
        let mut state = self.lock_state();
        if self.epoch.load(Ordering::Relaxed) != epoch {
            return;
        }
        self.lanes.iter().for_each(|lane| lane.leave(&self.medium, epoch));
        let settled = epoch - 1;
        if state.settled != settled {
            state.settled = settled;
            state.write(&self.medium, self.seed);
            self.settled.store(settled, Ordering::Relaxed);
            self.extents.settled(settled);
        }
        self.extents.begin_epoch(epoch + 1);
        // ORDERING: pairs with the acquire in `enter`: a thread that saw an effect of the epoch
        // joins it.
        self.epoch.store(epoch + 1, Ordering::Release);
        drop(state);
        self.tick();
    }

    /// Returns empty slabs, and memory that has been free long enough. Call it every 50 ms or so;
    /// `now_ms` never goes back.
    pub fn maintain(&self, now_ms: u64) {
        self.now_ms.fetch_max(now_ms, Ordering::Relaxed);
        self.retire_empty();
        self.tick();
    }

    /// Until the heap is closed, free memory at the end stays in the file, without a place on the
    /// disk: a reader without a lock may be there.
    pub fn keep_length(&self) {
        self.extents.keep_length();
    }

    /// `false`: there was none.
    pub(crate) fn retire_empty(&self) -> bool {
        let mut any = false;
        for arena in 0..self.arenas.len() {
            for class in 0..CLASSES {
                while self.retire(&self.enter(0), arena, class) {
                    any = true;
                }
            }
        }
        any
    }

    pub(crate) fn tick(&self) {
        let settled = self.settled.load(Ordering::Relaxed);
        self.extents.tick(&self.medium, self.now_ms.load(Ordering::Relaxed), settled);
    }

    #[inline]
    pub(crate) fn epoch_of(&self, guard: &Guard<'_>) -> u64 {
        if M::FLUSHES { guard.lane.epoch() } else { 0 }
    }

    /// With room for `parts` and the spare lines.
    #[inline]
    pub(crate) fn enter(&self, parts: u32) -> Guard<'_> {
        let seat = self.seats.seat();
        let lane = &self.lanes[seat.lane as usize];
        if !M::FLUSHES {
            // Without epochs, only a change of a slab's class locks other lanes.
            let locked = seat.shared || self.options.morph != 0 && parts > 0 && self.seats.are_many();
            if locked {
                lane.lock();
                self.seats.set_locks(seat.lane);
            }
            return Guard { lane, index: seat.lane, locked, roomy: true };
        }
        self.enter_epoch(lane, seat.lane, parts)
    }

    fn enter_epoch<'a>(&'a self, lane: &'a Lane, index: u32, parts: u32) -> Guard<'a> {
        loop {
            lane.lock();
            // ORDERING: pairs with the release in `advance`.
            let epoch = self.epoch.load(Ordering::Acquire);
            if lane.has_room(&self.medium, epoch, parts + SPARE) {
                lane.begin(&self.medium, self.generation.load(Ordering::Relaxed));
                return Guard { lane, index, locked: true, roomy: true };
            }
            lane.unlock();
            self.advance(epoch);
        }
    }

    /// Moves this operation to the current epoch, in which another lane may have freed what it
    /// allocates: the old epoch is settled first, and recovery would redo the free alone.
    pub(crate) fn join_epoch(&self, guard: &Guard<'_>) {
        if M::FLUSHES && guard.roomy {
            // ORDERING: pairs with the release in `advance`, through the lock of the arena.
            let epoch = self.epoch.load(Ordering::Acquire);
            // A new half is empty: `advance` waits for this lane.
            let roomy = epoch == guard.lane.epoch() || guard.lane.has_room(&self.medium, epoch, SPARE + 1);
            debug_assert!(roomy, "an operation without room");
        }
    }

    #[inline]
    pub(crate) fn enter_cache(&self) -> Guard<'_> {
        let seat = self.seats.seat();
        if M::FLUSHES && seat.shared {
            return self.enter(0);
        }
        let lane = &self.lanes[seat.lane as usize];
        if seat.shared {
            lane.lock();
        }
        Guard { lane, index: seat.lane, locked: seat.shared, roomy: !M::FLUSHES }
    }

    /// Later than the stamps of all operations that this thread has seen.
    #[inline]
    pub(crate) fn stamp(&self) -> u64 {
        if !M::FLUSHES {
            return 0;
        }
        match self.options.stamp {
            // Threads that share a counter wait for its line. One thread alone counts faster than a
            // clock is read; its stamps are below the clock's, which ticks at least once a count.
            Some(stamp) if self.seats.are_many() => stamp(),
            // ORDERING: pairs with itself: stamps follow happens-before.
            _ => self.counter.fetch_add(1, Ordering::AcqRel),
        }
    }

    pub(crate) fn lock_arena(&self, arena: usize) -> MutexGuard<'_, Arena> {
        self.arenas[arena].lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn medium(&self) -> &M {
        &self.medium
    }

    pub fn model(&self) -> Model {
        self.sup.model
    }

    pub fn uuid(&self) -> u128 {
        self.sup.uuid
    }

    /// Lines up to this epoch are void: their homes are durable.
    pub fn settled_epoch(&self) -> u64 {
        self.settled.load(Ordering::Relaxed)
    }
}

#[cfg(loom)]
#[path = "heap/tests/model.rs"]
mod model;
