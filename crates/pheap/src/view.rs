//! Views for tools. No other thread may be in an operation, as in `check.rs`.

use crate::book_log::ChunkView;
use crate::config::Model;
use crate::error::Error;
use crate::extents::{ExtentKind, ExtentStats, Range};
use crate::guests::Guest;
use crate::heap::{Heap, Offset};
use crate::layout::{
    BOOK, BOOK_BYTES, LANE_HEADER_BYTES, LANES, PAGE, Places, ROOTS, ROOTS_END, STATES, SUPER, UNIT, VERSION, check_of,
};
use crate::slab::read_line;
use crate::state::{Phase, State, Super};
use crate::units::Tag;
use craton_base::{LINE_BYTES, Medium, Space};
use std::collections::HashMap;

/// Of the superblock and the newer state line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    pub version: u32,
    pub model: Model,
    pub uuid: u128,
    /// Nanoseconds since 1970; 0: unknown.
    pub created: u64,
    pub lanes: u32,
    /// Redo lines of half a ring.
    pub half: u32,
    pub stripes: u32,
    /// Largest size in bytes; 0: the medium's limit.
    pub most: u64,
    /// First byte of data.
    pub data: u64,
    pub phase: Phase,
    pub generation: u64,
    pub settled: u64,
    /// Torn or damaged; the other line counts.
    pub torn_state: Option<u64>,
}

impl Identity {
    /// Does not open the heap.
    pub fn read<M: Medium>(medium: &M) -> Result<Self, Error> {
        let sup = Super::read(medium)?;
        let state = State::read(medium, sup.seed())?;
        let is_torn = |at: &u64| {
            let line = read_line(medium, *at);
            line != [0; 8] && line[7] != check_of(&line, sup.seed() ^ at)
        };
        let Super { model, stripes, uuid, lanes, half, created, most } = sup;
        let State { settled, generation, phase, .. } = state;
        let data = sup.places().data();
        let torn_state = STATES.into_iter().find(is_torn);
        let version = VERSION;
        Ok(Self {
            version,
            model,
            uuid,
            created,
            lanes,
            half,
            stripes,
            most,
            data,
            phase,
            generation,
            settled,
            torn_state,
        })
    }

    /// Names the region of the file with this byte.
    pub fn place_of(&self, at: u64) -> String {
        let frames_end = if self.model == Model::Frames { self.most } else { 0 };
        let places = Places { lanes: self.lanes, half: self.half, frames_end };
        let (headers_end, ring) = (places.lane_header(self.lanes), 2 * u64::from(self.half) * LINE_BYTES);
        match at {
            _ if at < SUPER + LINE_BYTES => "superblock".to_owned(),
            _ if at < BOOK => "state lines".to_owned(),
            _ if at < BOOK + BOOK_BYTES => "heads of the bookkeeping log".to_owned(),
            _ if at < ROOTS_END => format!("line {} of the root table", (at - ROOTS) / LINE_BYTES),
            _ if at < headers_end => format!("header of lane {}", (at - LANES) / LANE_HEADER_BYTES),
            _ if at < places.ring(self.lanes) => format!("ring of lane {}", (at - headers_end) / ring),
            _ if at < self.data => format!("records of frames, byte {}", at - places.records()),
            _ => format!("unit {} of the data, byte {}", (at - self.data) / UNIT, at % UNIT),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlabView {
    pub at: u64,
    /// Bytes of an object.
    pub object_bytes: u32,
    /// That the slab has room for.
    pub objects: u32,
    /// Allocated objects of the class.
    pub live: u32,
    /// Allocated objects of other classes.
    pub guests: u32,
    /// Allocated objects of the former class: bytes, and number.
    pub old: Option<(u32, u32)>,
    /// Of allocated objects and undo buffers.
    pub live_bytes: u64,
}

impl<M: Medium + Space> Heap<M> {
    /// By address.
    pub fn slabs(&self) -> Vec<SlabView> {
        // By unit: sizes and numbers.
        let mut live: HashMap<u64, Vec<(u64, u32)>> = HashMap::new();
        self.objects(|at, bytes| {
            if self.units.get(at.0).is_some() {
                let sizes = live.entry(at.0 / UNIT).or_default();
                match sizes.iter_mut().find(|(size, _)| *size == bytes) {
                    Some((_, count)) => *count += 1,
                    None => sizes.push((bytes, 1)),
                }
            }
        });
        let undo = self.undo();
        let slabs = self.extents.list(&self.medium).into_iter().filter(|extent| extent.kind == ExtentKind::Slab);
        let view = |at: u64| {
            let tag = self.units.get(at)?;
            let class = &self.classes[tag.class];
            let sizes = live.get(&(at / UNIT)).map_or(&[][..], Vec::as_slice);
            let guests = self.guests_of(tag);
            let alike = guests.iter().filter(|guest| guest.bytes() == u64::from(class.size)).count() as u32;
            let (own, other): (Vec<_>, Vec<_>) = sizes.iter().partition(|(bytes, _)| *bytes == u64::from(class.size));
            let kept: u64 = undo.iter().filter(|(it, _)| it / UNIT == at / UNIT).map(|(_, bytes)| bytes).sum();
            Some(SlabView {
                at,
                object_bytes: class.size,
                objects: class.objects,
                live: own.first().map_or(0, |(_, count)| *count) - alike,
                guests: guests.len() as u32,
                old: other.first().filter(|_| tag.mixed).map(|(bytes, count)| (*bytes as u32, *count)),
                live_bytes: sizes.iter().map(|(bytes, count)| bytes * u64::from(*count)).sum::<u64>() + kept,
            })
        };
        slabs.filter_map(|extent| view(extent.page * PAGE)).collect()
    }

    /// Allocated ones.
    fn guests_of(&self, tag: Tag) -> Vec<Guest> {
        let arena = self.lock_arena(tag.arena);
        let slab = &arena.slabs[tag.slab];
        let guests = slab.guests.iter().flat_map(|guests| guests.iter());
        guests.filter(|guest| guest.is_allocated(&self.medium, slab.at)).collect()
    }

    /// By address.
    pub fn ranges(&self) -> Vec<Range> {
        self.extents.ranges(&self.medium)
    }

    /// Oldest first.
    pub fn log_chunks(&self) -> Vec<ChunkView> {
        self.extents.chunks()
    }

    pub fn extent_stats(&self) -> ExtentStats {
        self.extents.stats(&self.medium)
    }

    /// Transactions' buffers: offset and bytes.
    pub fn undo(&self) -> Vec<(u64, u64)> {
        let bytes = |at: u64| (at, self.size_of(Offset(at)).unwrap_or(0));
        self.undo_buffers().into_iter().map(bytes).collect()
    }

    /// [`check`](Self::check), the ranges, the roots, and what roots and lanes point to.
    pub fn verify(&self) -> Result<(), Error> {
        let damaged = |what, at| Err(Error::Damaged { what, at });
        self.check()?;
        self.extents.check(&self.medium)?;
        for root in self.roots()? {
            let object = self.load(root.slot.0);
            if object != 0 && self.size_of(Offset(object)).is_err() {
                return damaged("pointer of a root, which names no object", root.slot.0);
            }
        }
        match self.undo_buffers().into_iter().find(|at| self.size_of(Offset(*at)).is_err()) {
            Some(at) => damaged("undo buffer, which is no object", at),
            None => Ok(()),
        }
    }
}
