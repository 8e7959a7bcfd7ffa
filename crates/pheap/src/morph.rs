//! Objects of the class before, in a slab that has changed its class.

use crate::arena::Slab;
use crate::class::{CLASSES, Class};
use crate::error::Error;
use crate::heap::{Guard, Heap};
use crate::slab::Header;
use crate::units::Tag;
use craton_base::{Medium, Space};

/// In DRAM: which objects of the old class live, and which new objects they cover.
pub struct Old {
    pub class: usize,
    /// Live objects of the old class.
    pub live: u32,
}

impl Old {
    pub fn covers(&self, _: u32) -> bool {
        false
    }

    /// Offsets and sizes of the live old objects of the slab at `at`.
    pub fn objects(&self, _: u64, _: &Class) -> Vec<(u64, u64)> {
        Vec::new()
    }

    pub fn check<M: Medium>(&self, _: &M, _: u64, _: &Class, _: &Class) -> Result<(), Error> {
        Ok(())
    }
}

/// Reads the index table of a slab that may have objects of another class; returns how many.
pub fn adopt<M: Medium>(_: &M, _: &[Class; CLASSES], _: &mut Slab, _: &Header) -> Result<u64, Error> {
    Ok(0)
}

impl<M: Medium + Space> Heap<M> {
    pub(crate) fn morph(&self, _: &Guard<'_>, _: usize, _: usize) -> bool {
        false
    }

    /// The entry of the index table for an object of the class before.
    pub(crate) fn old_index(&self, _: Tag, _: u64) -> Option<u32> {
        None
    }

    /// Word, bits and object size of an old object, if it is allocated.
    pub(crate) fn old_home(&self, _: Tag, _: u32, at: u64) -> Result<(u64, u64, u32), Error> {
        Err(Error::AlreadyFree { at })
    }

    pub(crate) fn finish_old(&self, _: &Guard<'_>, _: Tag, _: u32) {}
}
