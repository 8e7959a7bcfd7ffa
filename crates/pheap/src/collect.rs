//! Collection after a crash, for heaps whose small objects are not logged.

use crate::error::Error;
use crate::heap::Heap;
use crate::recover::Report;
use craton_base::{Medium, Space};

impl<M: Medium + Space> Heap<M> {
    pub(crate) fn collect_after_crash(&mut self, _: &mut Report) -> Result<(), Error> {
        Ok(())
    }

    pub(crate) fn write_bits(&self) {}
}
