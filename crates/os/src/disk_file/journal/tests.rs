extern crate std;
use super::*;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::vec;
use std::vec::Vec;

const SECTOR: usize = 512;

/// SplitMix64.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

#[derive(Default)]
struct Plan {
    calls: u64,
    fails: Option<u64>,
    /// From this call on the power is gone.
    ends: Option<u64>,
    rng: Option<Rng>,
}

impl Plan {
    fn call(&mut self) -> Result<(), FileError> {
        self.calls += 1;
        let ended = self.ends.is_some_and(|ends| self.calls >= ends);
        if ended || self.fails == Some(self.calls) { Err(FileError::System("test", libc::EIO)) } else { Ok(()) }
    }

    fn ended(&self) -> bool {
        self.ends.is_some_and(|ends| self.calls >= ends)
    }
}

/// In sectors, in any order.
#[derive(Clone)]
enum Pending {
    Write(usize, Vec<u8>),
    Size(usize),
}

/// It loses, tears and refuses.
#[derive(Clone)]
struct SimFile {
    plan: Rc<RefCell<Plan>>,
    seen: Rc<RefCell<Vec<u8>>>,
    durable: Rc<RefCell<Vec<u8>>>,
    pending: Rc<RefCell<Vec<Pending>>>,
}

impl SimFile {
    fn new(plan: &Rc<RefCell<Plan>>, bytes: Vec<u8>) -> Self {
        let cell = |bytes: &Vec<u8>| Rc::new(RefCell::new(bytes.clone()));
        Self { plan: plan.clone(), seen: cell(&bytes), durable: cell(&bytes), pending: Rc::default() }
    }

    fn crash(&self, mut keep: impl FnMut() -> bool) -> Vec<u8> {
        let mut bytes = self.durable.borrow().clone();
        for pending in self.pending.borrow().iter() {
            match pending {
                Pending::Size(size) if keep() => bytes.resize(*size, 0),
                Pending::Size(_) => {}
                Pending::Write(at, data) => {
                    for (i, sector) in data.chunks(SECTOR).enumerate() {
                        let at = at + i * SECTOR;
                        if keep() {
                            let end = at + sector.len();
                            bytes.resize(bytes.len().max(end), 0);
                            bytes[at..end].copy_from_slice(sector);
                        }
                    }
                }
            }
        }
        bytes
    }

    fn change(&self, pending: Pending) {
        let mut seen = self.seen.borrow_mut();
        match &pending {
            Pending::Size(size) => seen.resize(*size, 0),
            Pending::Write(at, data) => {
                let end = at + data.len();
                let len = seen.len().max(end);
                seen.resize(len, 0);
                seen[*at..end].copy_from_slice(data);
            }
        }
        self.pending.borrow_mut().push(pending);
    }
}

impl Store for SimFile {
    fn size(&self) -> Result<u64, FileError> {
        Ok(self.seen.borrow().len() as u64)
    }

    fn read(&self, at: u64, into: &mut [u8]) -> Result<(), FileError> {
        into.copy_from_slice(&self.seen.borrow()[at as usize..][..into.len()]);
        Ok(())
    }

    fn write(&self, at: u64, from: &[u8]) -> Result<(), FileError> {
        let answer = self.plan.borrow_mut().call();
        if self.plan.borrow().ended() {
            return answer;
        }
        let written = if answer.is_ok() { from.len() } else { from.len() / 2 / SECTOR * SECTOR };
        self.change(Pending::Write(at as usize, from[..written].to_vec()));
        answer
    }

    fn set_size(&self, bytes: u64) -> Result<(), FileError> {
        self.plan.borrow_mut().call()?;
        self.change(Pending::Size(bytes as usize));
        Ok(())
    }

    fn punch(&self, at: u64, bytes: u64) -> Result<(), FileError> {
        self.plan.borrow_mut().call()?;
        self.change(Pending::Write(at as usize, vec![0; bytes as usize]));
        Ok(())
    }

    fn sync(&self) -> Result<(), FileError> {
        let answer = self.plan.borrow_mut().call();
        let plan = self.plan.borrow();
        if answer.is_ok() {
            *self.durable.borrow_mut() = self.seen.borrow().clone();
            self.pending.borrow_mut().clear();
        } else if !plan.ended() {
            drop(plan);
            let mut rng = self.plan.borrow_mut().rng.take().unwrap_or(Rng(1));
            let left = self.crash(|| rng.below(2) == 0);
            self.plan.borrow_mut().rng = Some(rng);
            *self.durable.borrow_mut() = left;
            self.pending.borrow_mut().clear();
        }
        answer
    }
}

/// The mark's place.
fn clear(number: u64, page: &mut [u8]) {
    if number == 0 {
        page[MARK..MARK + HEAD_BYTES].fill(0);
    }
}

fn page(number: u64, value: u64) -> Vec<u8> {
    if value == 0 { vec![0; BLOCK as usize] } else { [number.to_le_bytes(), value.to_le_bytes()].concat().repeat(256) }
}

type Pages = Vec<u64>;

const ID: u64 = 0x1d;

struct World {
    plan: Rc<RefCell<Plan>>,
    home: SimFile,
    file: SimFile,
    journal: Journal,
    now: Pages,
    synced: Pages,
    changed: Vec<u64>,
}

impl World {
    fn new() -> Self {
        let plan = Rc::default();
        let (home, file) = (SimFile::new(&plan, vec![0; 8 * BLOCK as usize]), SimFile::new(&plan, Vec::new()));
        let pair = Pair { home: &home, journal: &file };
        let mut journal = Journal::create(&pair, 8 * BLOCK, ID).unwrap();
        journal.mend(&pair).unwrap();
        Self { plan, home, file, journal, now: vec![0; 8], synced: vec![0; 8], changed: Vec::new() }
    }

    fn set(&mut self, page: usize, value: u64) {
        self.now[page] = value;
        self.changed.push(page as u64);
    }

    fn resize(&mut self, pages: usize) {
        if self.home.seen.borrow().len() < pages * BLOCK as usize && self.home.set_size(pages as u64 * BLOCK).is_err() {
            return;
        }
        let old = self.now.len();
        // A dropped end is zero, and changed, when back.
        self.now.resize(pages, 0);
        self.changed.extend((old.min(pages)..old.max(pages)).map(|page| page as u64));
    }

    fn sync(&mut self) -> Result<Synced, FileError> {
        self.changed.sort_unstable();
        self.changed.dedup();
        let now = self.now.clone();
        let pages: Vec<_> = self.changed.iter().copied().filter(|page| *page < now.len() as u64).collect();
        let copy = |number: u64, into: &mut [u8]| {
            into.copy_from_slice(&page(number, now[number as usize]));
            clear(number, into);
            page_check(into)
        };
        let pair = Pair { home: &self.home, journal: &self.file };
        let synced = self.journal.sync(&pair, now.len() as u64 * BLOCK, &pages, false, copy, || {})?;
        self.changed.retain(|page| *page >= now.len() as u64);
        self.synced = now;
        Ok(synced)
    }

    fn checkpoint(&mut self) -> Result<(), FileError> {
        let mut entries: Vec<Entry> = self.journal.journaled(1).collect();
        entries.sort_unstable_by_key(|entry| entry.page);
        let size = self.home.size()?;
        let mut bytes = Buffer::new();
        let pair = Pair { home: &self.home, journal: &self.file };
        write_home(&pair, &entries, size, &mut bytes)?;
        let needed = self.journal.len().max(self.now.len() as u64 * BLOCK);
        if size > needed {
            self.home.set_size(needed)?;
        }
        self.home.sync()?;
        self.journal.reset(&pair, 64 * BLOCK)
    }

    fn close(&mut self) -> Result<(), FileError> {
        self.checkpoint()?;
        clear_mark(&self.home)
    }

    fn found(home: Vec<u8>, file: Vec<u8>) -> Result<Pages, FileError> {
        let plan = Rc::default();
        let (home, file) = (SimFile::new(&plan, home), SimFile::new(&plan, file));
        let mut journal = Journal::open(&Pair { home: &home, journal: &file }, ID + 1)?;
        journal.mend(&Pair { home: &home, journal: &file })?;
        let len = journal.len();
        home.set_size(len)?;
        let slots: BTreeMap<u64, Entry> = journal.journaled(1).map(|slot| (slot.page, slot)).collect();
        let value = |number: u64| {
            let mut bytes = vec![0; BLOCK as usize];
            match slots.get(&number) {
                Some(slot) if slot.place & IS_ZERO != 0 => {}
                Some(slot) => file.read(slot.place, &mut bytes).unwrap(),
                None => home.read(number * BLOCK, &mut bytes).unwrap(),
            }
            let value = u64::from_le_bytes(bytes[8..16].try_into().unwrap());
            clear(number, &mut bytes);
            let mut whole = page(number, value);
            clear(number, &mut whole);
            assert_eq!(bytes, whole, "page {number} is torn");
            value
        };
        Ok((0..len / BLOCK).map(value).collect())
    }

    fn crash(&self, rng: &mut Rng, expected: &[&Pages], context: &str) {
        for way in 0..8 {
            let mut keep = || match way {
                0 => true,
                1 => false,
                _ => rng.below(2) == 0,
            };
            let (home, file) = (self.home.crash(&mut keep), self.file.crash(&mut keep));
            let found = Self::found(home, file);
            assert!(expected.iter().any(|pages| found.as_ref() == Ok(pages)), "{context}: {found:?}, not {expected:?}");
        }
    }

    fn run(&mut self, rng: &mut Rng, steps: u64, mut after: impl FnMut(&Self, &mut Rng)) -> Result<(), FileError> {
        for step in 0..steps {
            match rng.below(8) {
                0..4 => {
                    let at = rng.below(self.now.len() as u64) as usize;
                    self.set(at, if rng.below(3) == 0 { 0 } else { step + 1 });
                }
                4 => self.resize(1 + rng.below(12) as usize),
                5 | 6 => drop(self.sync()?),
                _ => self.checkpoint()?,
            }
            after(self, rng);
        }
        Ok(())
    }
}

#[test]
fn synced_pages_are_there_after_a_crash_and_others_are_not() {
    let mut world = World::new();
    world.set(1, 7);
    world.set(3, 8);
    assert_eq!(world.sync(), Ok(Synced { pages: 2, bytes: 3 * BLOCK }));
    world.set(3, 9);
    world.crash(&mut Rng(1), &[&vec![0, 7, 0, 8, 0, 0, 0, 0]], "after a sync");
}

#[test]
fn a_page_costs_a_page_and_a_zero_page_costs_none() {
    let mut world = World::new();
    world.set(1, 7);
    assert_eq!(world.sync(), Ok(Synced { pages: 1, bytes: 2 * BLOCK }));
    (1..7).for_each(|page| world.set(page, 0));
    assert_eq!(world.sync(), Ok(Synced { pages: 6, bytes: BLOCK }));
    assert_eq!(world.sync(), Ok(Synced::default()), "nothing changed");
}

#[test]
fn a_crash_at_each_call_leaves_a_sync_point() {
    for seed in 0..100 {
        let mut calls = World::new();
        calls.run(&mut Rng(seed), 24, |_, _| {}).unwrap();
        let total = calls.plan.borrow().calls;
        for ends in 3..=total + 1 {
            let mut world = World::new();
            world.plan.borrow_mut().ends = Some(ends);
            let _ = world.run(&mut Rng(seed), 24, |_, _| {});
            let (before, under_way) = (world.synced.clone(), world.now.clone());
            world.crash(&mut Rng(ends), &[&before, &under_way], &std::format!("seed {seed}, call {ends}"));
        }
    }
}

#[test]
fn after_a_failed_call_the_last_sync_stands_and_the_next_succeeds() {
    for seed in 0..60 {
        let mut calls = World::new();
        calls.run(&mut Rng(seed), 24, |_, _| {}).unwrap();
        let total = calls.plan.borrow().calls;
        for fails in 3..=total {
            let context = std::format!("seed {seed}, call {fails}");
            let mut world = World::new();
            world.plan.borrow_mut().fails = Some(fails);
            world.plan.borrow_mut().rng = Some(Rng(seed));
            let mut rng = Rng(seed);
            if world.run(&mut rng, 24, |_, _| {}).is_err() {
                let synced = world.synced.clone();
                world.crash(&mut Rng(fails), &[&synced], &context);
            }
            let before = world.synced.clone();
            world.run(&mut rng, 12, |_, _| {}).unwrap();
            world.sync().unwrap();
            let now = world.now.clone();
            assert_eq!(now, world.synced, "{before:?}");
            world.crash(&mut Rng(fails), &[&now], &context);
            world.checkpoint().unwrap();
            world.crash(&mut Rng(fails), &[&now], &context);
        }
    }
}

#[test]
fn a_changed_bit_is_found_and_no_later_sync_is_dropped_for_it() {
    let mut world = World::new();
    for round in 1..4 {
        world.set(1, round);
        world.sync().unwrap();
    }
    let (home, file) = (world.home.seen.borrow().clone(), world.file.seen.borrow().clone());
    let last = (BLOCK + 2 * 2 * BLOCK) as usize;
    for at in (0..file.len()).step_by(61) {
        let mut changed = file.clone();
        changed[at] ^= 4;
        let found = World::found(home.clone(), changed);
        match found {
            Err(FileError::Journal) => assert!(at < HEAD_BYTES),
            Err(FileError::Damaged(place)) => assert!(at < last && place as usize <= at, "{at}"),
            Ok(pages) if at < last => assert!(at < BLOCK as usize && pages[1] == 3, "{at}"),
            Ok(pages) => assert_eq!(pages[1], 2, "{at}"),
            Err(error) => panic!("{error:?}"),
        }
    }
}

#[test]
fn a_cut_journal_keeps_the_syncs_before_the_cut() {
    let mut world = World::new();
    for round in 1..4 {
        world.set(1, round);
        world.sync().unwrap();
    }
    let (home, file) = (world.home.seen.borrow().clone(), world.file.seen.borrow().clone());
    for cut in (BLOCK as usize..=file.len()).step_by(512) {
        let found = World::found(home.clone(), file[..cut].to_vec()).unwrap();
        assert_eq!(found[1], (cut as u64 / BLOCK - 1) / 2);
    }
    assert_eq!(World::found(home.clone(), file[..100].to_vec()), Err(FileError::Journal));
    assert_eq!(World::found(home, vec![1; 3 * BLOCK as usize]), Err(FileError::Journal));
}

#[test]
fn a_large_sync_is_written_in_parts_that_count_together() {
    let plan = Rc::default();
    let file = SimFile::new(&plan, Vec::new());
    let pages: Vec<u64> = (0..2 * PART_PAGES as u64 + 10).collect();
    let len = pages.len() as u64 * BLOCK;
    let home = SimFile::new(&plan, vec![0; BLOCK as usize]);
    let pair = Pair { home: &home, journal: &file };
    let mut journal = Journal::create(&pair, len, ID).unwrap();
    let copy = |number: u64, into: &mut [u8]| {
        into.copy_from_slice(&page(number, 5));
        page_check(into)
    };
    let synced = journal.sync(&pair, len, &pages, false, copy, || {}).unwrap();
    assert_eq!(synced.pages, pages.len() as u64);
    let opened = Journal::open(&pair, ID).unwrap();
    assert_eq!(opened.journaled(1).count(), pages.len());
    file.set_size(synced.bytes).unwrap();
    assert_eq!(Journal::open(&pair, ID).unwrap().journaled(1).count(), 0, "the last part is cut");
}

#[test]
fn equal_pages_are_left_out_where_asked() {
    let plan = Rc::default();
    let file = SimFile::new(&plan, Vec::new());
    let home = SimFile::new(&plan, vec![0; 8 * BLOCK as usize]);
    let pair = Pair { home: &home, journal: &file };
    let mut journal = Journal::create(&pair, 8 * BLOCK, ID).unwrap();
    let sync = |value: u64, journal: &mut Journal| {
        let copy = |number: u64, into: &mut [u8]| {
            into.copy_from_slice(&page(number, if number == 1 { value } else { 3 }));
            page_check(into)
        };
        journal.sync(&pair, 8 * BLOCK, &[1, 2], true, copy, || {}).unwrap().pages
    };
    assert_eq!([sync(1, &mut journal), sync(1, &mut journal), sync(2, &mut journal)], [2, 0, 1]);
}

#[test]
fn j6_only_the_journal_of_the_file_is_applied() {
    let at_work = |value: u64| {
        let mut world = World::new();
        world.journal.id += value;
        world.journal.has_doubtful_mark = true;
        world.journal.has_doubtful_head = true;
        for page in [0, 3, 5] {
            world.set(page, value);
            world.sync().unwrap();
        }
        world
    };
    let images = |world: &World| (world.home.seen.borrow().clone(), world.file.seen.borrow().clone());
    let (mut world, other) = (at_work(7), at_work(9));
    let (home, file) = images(&world);
    assert_eq!(World::found(home.clone(), images(&other).1), Err(FileError::OtherJournal));
    assert_eq!(World::found(home.clone(), Vec::new()), Err(FileError::NoJournal));
    assert_eq!(World::found(home.clone(), file.clone()), Ok(world.now.clone()));
    // The file goes on, and its old journal comes back.
    for round in 1..4 {
        world.set(3, 70 + round);
        world.sync().unwrap();
        world.checkpoint().unwrap();
        let now = images(&world).0;
        match round {
            // The checkpoint may have ended before it began the next generation.
            1 => assert_eq!(World::found(now, file.clone()), Ok(world.now.clone())),
            _ => assert_eq!(World::found(now, file.clone()), Err(FileError::OtherJournal)),
        }
    }
    world.set(0, 0);
    world.sync().unwrap();
    world.close().unwrap();
    let closed = images(&world);
    assert_eq!(closed.0[MARK..MARK + HEAD_BYTES], [0; HEAD_BYTES]);
    assert_eq!(World::found(closed.0.clone(), file), Err(FileError::OtherJournal));
    assert_eq!(World::found(closed.0.clone(), closed.1), Ok(world.now.clone()));
    assert_eq!(World::found(closed.0, Vec::new()), Ok(world.now.clone()));
}

#[test]
fn a_damaged_mark_is_named() {
    let mut world = World::new();
    world.set(0, 7);
    world.sync().unwrap();
    let (home, file) = (world.home.seen.borrow().clone(), world.file.seen.borrow().clone());
    for bit in 0..8 * HEAD_BYTES {
        let mut changed = home.clone();
        changed[MARK + bit / 8] ^= 1 << (bit % 8);
        // Without its first word there is no mark, and then no syncs may be missing.
        let expected = if bit < 64 { FileError::OtherJournal } else { FileError::Mark };
        assert_eq!(World::found(changed, file.clone()), Err(expected), "bit {bit}");
    }
}
