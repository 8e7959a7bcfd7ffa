//! Makes the host back free memory before a measurement: in a virtual machine a first touch may
//! take milliseconds for each 2 MiB.

use memmap2::{Advice, MmapMut};

const PAGE: usize = 4096;

pub fn back(bytes: usize) {
    let Ok(mut memory) = MmapMut::map_anon(bytes) else { return };
    // The host gets pieces of 2 MiB.
    let _ = memory.advise(Advice::HugePage);
    memory.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
}
