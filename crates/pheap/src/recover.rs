//! Redo after a crash: sorts the whole operations of unsettled epochs by stamp, and makes their
//! stores again (NVAlloc §4.4).
//!
//! **Invariants.** *NR1* The same crash image yields the same heap, also after a crash in here:
//! redo stores only values that the lines name. *NR2* A store into a range that a later line
//! allocates or frees is void. *NR3* A slot whose durable value no line of its chain names was
//! written by the application since, and stays.
//!
//! **Cost.** Reads the rings that the last generation used, 64 KiB each.

use crate::error::Error;
use crate::guests;
use crate::lane::header::Header;
use crate::lane::seed_of;
use crate::layout::{LANE_PENDING, ROOTS};
use crate::line::{Contents, Fixed, Kind, Place, Redo};
use crate::slab::{self, read_line};
use crate::state::{Phase, State, Super};
use craton_base::atomic::Ordering;
use craton_base::{LINE_BYTES, Medium, Space};
use std::collections::{BTreeMap, BTreeSet, HashMap};

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Report {
    pub clean: bool,
    /// How often the heap was opened, with this time.
    pub generation: u64,
    /// Committed; their homes may not have been durable.
    pub lines: u64,
    /// Of operations not committed as a whole.
    pub torn: u64,
    /// Got their committed value.
    pub slots: u64,
    /// The application had written them since.
    pub slots_left: u64,
    /// Stores into ranges with later owners.
    pub void: u64,
    /// Transactions.
    pub undone: u64,
    /// Of operations under way (frames).
    pub pages: u64,
    pub slabs: u64,
    /// Objects.
    pub small: u64,
    pub large: u64,
    /// Objects that no root reached (GC).
    pub collected: u64,
}

pub fn redo<M: Medium + Space>(medium: &M, sup: &Super, state: &mut State, report: &mut Report) -> Result<(), Error> {
    let seed = sup.seed();
    let mut highest = state.settled;
    let mut lines = read_rings(medium, sup, state, &mut highest, report)?;
    lines.sort_by_key(|(_, place)| (place.stamp, place.part));
    let mut dirty = BTreeSet::new();
    let mut make = |lines: &[(Redo, Place)], report: &mut Report| {
        apply(medium, seed, lines, report, &mut |at| _ = dirty.insert(at & !(LINE_BYTES - 1)))
    };
    make(&lines, report)?;
    for lane in 0..sup.lanes {
        let pending = read_pending(medium, sup, lane)?;
        make(&pending, report)?;
    }
    for line in dirty {
        medium.flush(line);
    }
    medium.fence();
    for lane in 0..sup.lanes {
        let at = sup.places().lane_header(lane) + LANE_PENDING;
        if medium.word(at).load(Ordering::Relaxed) != 0 {
            medium.store(at, 0);
            medium.flush(at);
        }
    }
    state.settled = highest;
    state.phase = Phase::Recovering;
    state.write(medium, seed);
    Ok(())
}

/// `highest` becomes the last epoch of any whole line.
fn read_rings<M: Medium>(
    medium: &M,
    sup: &Super,
    state: &State,
    highest: &mut u64,
    report: &mut Report,
) -> Result<Vec<(Redo, Place)>, Error> {
    let places = sup.places();
    let mut committed = Vec::new();
    for lane in 0..sup.lanes {
        let header = Header { medium, seed: sup.seed(), at: places.lane_header(lane) };
        if header.used()? < state.generation {
            continue;
        }
        let mut parts: BTreeMap<(u64, u64), Vec<(Redo, Place)>> = BTreeMap::new();
        for line in 0..2 * u64::from(places.half) {
            let at = places.ring(lane) + line * LINE_BYTES;
            if medium.word(at).load(Ordering::Relaxed) == 0 {
                continue;
            }
            let Some((redo, place)) = Redo::decode(&read_line(medium, at), seed_of(sup.seed(), at)) else { continue };
            if place.epoch > state.settled {
                *highest = (*highest).max(place.epoch);
                parts.entry((place.epoch, place.stamp)).or_default().push((redo, place));
            }
        }
        for operation in parts.into_values() {
            let whole = operation.len() == operation[0].1.parts as usize;
            if whole {
                report.lines += operation.len() as u64;
                committed.extend(operation);
            } else {
                report.torn += operation.len() as u64;
            }
        }
    }
    Ok(committed)
}

/// Without write-back: the operation that the lane had not ended.
fn read_pending<M: Medium>(medium: &M, sup: &Super, lane: u32) -> Result<Vec<(Redo, Place)>, Error> {
    let header = Header { medium, seed: sup.seed(), at: sup.places().lane_header(lane) };
    let read = |line: u64| {
        let at = sup.places().ring(lane) + line * LINE_BYTES;
        let redo = Redo::decode_summed(&read_line(medium, at), seed_of(sup.seed(), at));
        redo.ok_or(Error::Damaged { what: "redo line", at })
    };
    (0..header.pending()?).map(read).collect()
}

#[derive(Default)]
struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    fn holds(&self, at: u64) -> bool {
        self.0.range(..=at).next_back().is_some_and(|(_, end)| at < *end)
    }

    fn insert(&mut self, mut from: u64, mut to: u64) {
        while let Some((begin, end)) = self.0.range(..=to).next_back().map(|(a, b)| (*a, *b))
            && end >= from
        {
            self.0.remove(&begin);
            (from, to) = (from.min(begin), to.max(end));
        }
        self.0.insert(from, to);
    }
}

/// Of a slot, in order.
#[derive(Default)]
struct Chain {
    values: Vec<u64>,
    /// The heap alone changes it (NX1).
    is_ours: bool,
}

/// NX1 (`fixed.rs`), of a line that no later one follows.
fn is_whole<M: Medium>(medium: &M, seed: u64, redo: &Redo) -> bool {
    let fixed = Fixed::of(redo);
    if fixed.words == 0 {
        return true;
    }
    let end = redo.new.saturating_add(8 * u64::from(fixed.words));
    if !redo.new.is_multiple_of(8) || end > medium.len() {
        return false;
    }
    let mut contents = Contents::new(seed ^ redo.new);
    (redo.new..end).step_by(8).for_each(|at| contents.add(medium.word(at).load(Ordering::Relaxed)));
    contents.end() == (fixed.words, fixed.check)
}

fn apply<M: Medium>(
    medium: &M,
    seed: u64,
    lines: &[(Redo, Place)],
    report: &mut Report,
    dirty: &mut dyn FnMut(u64),
) -> Result<(), Error> {
    let mut owned = Ranges::default();
    // Not void: slot, home, the word of a fixed object.
    let mut made = vec![(false, false, false); lines.len()];
    for (i, (redo, _)) in lines.iter().enumerate().rev() {
        if redo.kind == Kind::Publish {
            let later = owned.holds(redo.new);
            if !later && !is_whole(medium, seed, redo) {
                report.lines = report.lines.saturating_sub(1);
                report.torn += 1;
                continue;
            }
            made[i] = (!owned.holds(redo.slot), !later, !owned.holds(redo.home));
            report.void += [made[i].0, made[i].1, made[i].2].into_iter().map(|made| u64::from(!made)).sum::<u64>();
            owned.insert(redo.new, redo.new + u64::from(Fixed::of(redo).len) * 16);
            continue;
        }
        let home = if redo.kind == Kind::NewSlab { redo.new } else { redo.home };
        made[i] = (redo.slot != 0 && !owned.holds(redo.slot), redo.kind != Kind::Set && !owned.holds(home), false);
        report.void += u64::from(redo.slot != 0 && !made[i].0) + u64::from(redo.kind != Kind::Set && !made[i].1);
        if let Some((from, len)) = redo.range() {
            owned.insert(from, from + len);
        }
    }
    let mut chains: HashMap<u64, Chain> = HashMap::new();
    for ((redo, _), (slot, home, word)) in lines.iter().zip(made) {
        if home {
            check_home(medium, redo)?;
            slab::redo(medium, seed, redo, &mut *dirty);
        } else if redo.kind == Kind::NewSlab {
            // The unit has another owner; the log's word has none.
            check_word(medium, redo.home)?;
            medium.store(redo.home, redo.value);
            dirty(redo.home);
        }
        if slot {
            check_word(medium, redo.slot)?;
            let chain = chains.entry(redo.slot).or_default();
            chain.values.extend([redo.old, redo.new]);
            chain.is_ours |= redo.kind == Kind::Publish;
        }
        if word {
            check_word(medium, redo.home)?;
            let chain = chains.entry(redo.home).or_default();
            chain.values.push(redo.value);
            chain.is_ours = true;
        }
    }
    for (slot, Chain { values, is_ours }) in chains {
        let (found, last) = (medium.word(slot).load(Ordering::Relaxed), values[values.len() - 1]);
        if !is_ours && !values.contains(&found) {
            report.slots_left += 1;
            continue;
        }
        report.slots += u64::from(found != last);
        medium.store(slot, last);
        dirty(slot);
    }
    Ok(())
}

fn check_word<M: Medium>(medium: &M, at: u64) -> Result<(), Error> {
    match at.is_multiple_of(8) && at >= ROOTS.min(crate::layout::BOOK) && at < medium.len() {
        true => Ok(()),
        false => Err(Error::Damaged { what: "a redo line's word", at }),
    }
}

fn check_home<M: Medium>(medium: &M, redo: &Redo) -> Result<(), Error> {
    check_word(medium, redo.home)?;
    match redo.kind {
        Kind::NewSlab => check_word(medium, redo.new + crate::layout::UNIT - 8),
        Kind::AllocGuest | Kind::FreeGuest => {
            let (slab, guest) = slab::guest_of(redo);
            let fits = guest.granules >= guests::LEAST && guest.first + guest.granules <= guests::GRANULES;
            check_word(medium, if fits { slab + crate::layout::UNIT - 8 } else { 0 })
        }
        Kind::Publish => {
            let end = redo.new.saturating_add(u64::from(Fixed::of(redo).len) * 16);
            let fits = redo.new % crate::layout::UNIT >= crate::layout::SLAB_HEADER && end <= medium.len();
            check_word(medium, if fits { slab::bit_of_fixed(redo).0 } else { 0 })
        }
        Kind::Morph | Kind::Settle => check_word(medium, redo.home + crate::layout::UNIT - 8),
        _ => Ok(()),
    }
}
