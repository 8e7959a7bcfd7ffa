//! A zone and a CPU as a [`FrameSource`]. Dense spans' frames are [`Kind::Unmovable`], pinned by
//! many small objects. Frees that are no single block are validated first: all or none.

use crate::config::Request;
use crate::error::Error;
use crate::geometry::{Geometry, Standard};
use crate::media::{Media, Volatile};
use crate::tree::Kind;
use crate::zone::Zone;
use craton_base::{Density, FrameSource};

pub struct Seat<'z, 'a, G = Standard, M = Volatile> {
    zone: &'z Zone<'a, G, M>,
    processor: usize,
}

impl<'z, 'a, G: Geometry, M: Media> Seat<'z, 'a, G, M> {
    /// Fails if the zone has fewer CPUs.
    pub fn new(zone: &'z Zone<'a, G, M>, processor: usize) -> Result<Self, Error> {
        zone.local(processor, Kind::Movable)?;
        Ok(Self { zone, processor })
    }

    pub fn zone(&self) -> &'z Zone<'a, G, M> {
        self.zone
    }

    fn request(&self, order: u32, density: Density) -> Request {
        let kind = match density {
            Density::Dense => Kind::Unmovable,
            Density::Sparse => Kind::Movable,
        };
        Request { order, kind, processor: self.processor }
    }
}

impl<G: Geometry, M: Media> FrameSource for Seat<'_, '_, G, M> {
    type Error = Error;

    const HUGE_ORDER: u32 = G::HUGE_ORDER;

    fn get(&self, order: u32, density: Density) -> Result<usize, Error> {
        self.zone.get(self.request(order, density))
    }

    fn get_at(&self, first: usize, frames: usize) -> Result<(), Error> {
        self.zone.reserve(first, frames)
    }

    fn put(&self, first: usize, frames: usize) -> Result<(), Error> {
        let order = frames.trailing_zeros();
        let is_block = frames.is_power_of_two() && order <= G::MAX_ORDER && first.is_multiple_of(frames);
        match is_block {
            true => self.zone.put(first, self.request(order, Density::Sparse)),
            false => self.zone.unreserve(first, frames),
        }
    }

    fn online(&self, first: usize, huge_frames: usize) -> Result<(), Error> {
        self.zone.online(first, huge_frames)
    }

    fn offline(&self, first: usize, huge_frames: usize) -> Result<(), Error> {
        self.zone.offline(first, huge_frames)
    }

    fn reclaim(&self, near: usize) -> Option<usize> {
        self.zone.reclaim(near)
    }
}
