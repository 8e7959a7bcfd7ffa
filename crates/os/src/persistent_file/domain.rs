//! Whether the caches above a persistent memory are persistent too (eADR).
//!
//! The driver of a memory region, a parent of the file's device, reports `cpu_cache` or
//! `memory_controller`. Without a report, caches count as volatile.

use super::descriptor::{Descriptor, Kind, device_path};
use crate::small_file::read_start;

const REGIONS: [&[u8]; 4] = [
    b"/device/../persistence_domain",
    b"/../device/../persistence_domain",
    b"/../../persistence_domain",
    b"/../../../persistence_domain",
];

pub(super) fn has_persistent_caches(sys: &[u8], file: &Descriptor) -> bool {
    let kind: &[u8] = if file.kind == Kind::DaxDevice { b"/dev/char/" } else { b"/dev/block/" };
    is_cpu_cache(sys, kind, file.device)
}

fn is_cpu_cache(sys: &[u8], kind: &[u8], device: (u32, u32)) -> bool {
    let mut buffer = [0; 32];
    REGIONS.iter().any(|region| {
        let text = device_path(sys, kind, device, region).and_then(|path| read_start(&path, &mut buffer).ok());
        text.is_some_and(|text| text.trim_ascii() == b"cpu_cache")
    })
}

#[cfg(test)]
mod tests;
