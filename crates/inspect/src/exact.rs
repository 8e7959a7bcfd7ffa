//! The exact heap profile under `debug=audit`: each live buffer by the stack of its allocation.
//!
//! **Failure.** A text with the reason. A thread may be changing a part of the records: then the
//! caller looks again.

use crate::kit::Kit;
use crate::locks;
use crate::profile::{Count, Profile, Site};
use crate::reader::Reader;
use crate::table::Table;
use std::collections::HashMap;

/// Adds the live buffers to a profile; returns whether no thread was changing their records.
pub(crate) fn add(profile: &mut Profile, reader: &Reader<'_>, table: &Table) -> Result<bool, String> {
    let kit = Kit::read(reader, table)?;
    let mut sums: HashMap<u32, Count> = HashMap::new();
    for buffer in kit.buffers.iter().filter(|buffer| buffer.is_live && buffer.is_audited) {
        let sum = sums.entry(buffer.allocated.stack).or_default();
        (sum.bytes, sum.objects) = (sum.bytes + buffer.size, sum.objects + 1);
    }
    let mut sums: Vec<(u32, Count)> = sums.into_iter().collect();
    sums.sort_by_key(|(number, _)| *number);
    for (number, live) in sums {
        for sum in [&mut profile.exact, &mut profile.live] {
            (sum.bytes, sum.objects) = (sum.bytes + live.bytes, sum.objects + live.objects);
        }
        let stack = kit.stack(reader, number);
        profile.sites.push(Site { stack, live, peak: live, total: live, ..Site::default() });
    }
    Ok(!locks::are_records(reader, table)?)
}
