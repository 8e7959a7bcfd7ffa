//! Checks the heap's invariants: the walk's findings, and each class's sums against its counts.
//! Rules: `craton_slab` (S1 …), `craton_malloc` (M1, H4, T1, T3). Sums under a held lock are
//! skipped and reported.

use crate::heap::{Broken, Heap, Span};
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, Serialize)]
pub struct Verdict {
    pub spans: u64,
    /// Objects on lists.
    pub free: u64,
    /// Objects in transit, or lost with a thread in a fork.
    pub adrift: u64,
    pub held: Vec<String>,
    /// By address.
    pub broken: Vec<Broken>,
}

/// # Errors
/// The library's tables cannot be read.
pub fn verify(heap: &Heap<'_>) -> Result<Verdict, String> {
    let mut verdict = Verdict {
        spans: heap.spans.len() as u64 + heap.huge.len() as u64,
        free: heap.on_slabs + heap.in_caches,
        held: heap.held.clone(),
        broken: heap.broken.clone(),
        ..Verdict::default()
    };
    let (mut sums, mut free) = (BTreeMap::<(u64, u64), (u64, u64)>::new(), 0);
    for span in &heap.spans {
        let record = heap.record(span.first());
        let class = match span {
            Span::Slab { class, own, .. } => (*own == 0).then_some(*class),
            Span::Morphed { entry, .. } => {
                let start = heap.address(span.first());
                free += entry.old_objects().filter(|(at, _, _)| !heap.is_out(start + at)).count() as u64;
                let live = entry.old_objects().count() as u64 + u64::from(entry.head > 0);
                if live != entry.count {
                    let what = format!("a slab of two classes has {live} old objects, and {} are counted", entry.count);
                    verdict.broken.push(Broken { address: heap.address(span.first()), rule: "S6", what });
                }
                Some(entry.to)
            }
            Span::Large { .. } | Span::Cached { .. } | Span::Notes { .. } => None,
        };
        heap.for_each_place(span, |_, is_out| free += u64::from(!is_out));
        if let Some(class) = class {
            let sum = sums.entry((record.owner, class.into())).or_default();
            *sum = (sum.0 + 1, sum.1 + record.used);
        }
    }
    verdict.adrift = free.saturating_sub(verdict.free);
    let get = |name: &str| heap.table.get(name);
    let (lock, cache) = (get("shard.class.lock")?, get("shard.class.cache")?);
    let (slabs_at, out_at) = (get("cache.slabs")?, get("cache.objects_out")?);
    for shard in 0..heap.shards {
        for class in 1..heap.table.classes.len() as u64 {
            let at = heap.class_at(shard, class)?;
            if heap.reader.word(at + lock)? != 0 {
                continue;
            }
            let counted = (u64::from(heap.reader.u32(at + cache + slabs_at)?), heap.reader.word(at + cache + out_at)?);
            let (slabs, used) = sums.get(&(shard, class)).copied().unwrap_or_default();
            if counted != (slabs, used) {
                let (size, (n, out)) = (heap.table.classes[class as usize].object, counted);
                let what = format!(
                    "the class of {size} in shard {shard} counts {n} slabs and {out} objects, and its slabs come to \
                     {slabs} and {used}"
                );
                verdict.broken.push(Broken { address: at + cache, rule: "S4", what });
            }
        }
    }
    if !heap.held.is_empty() {
        // Such a slab can be between two lists.
        verdict.broken.retain(|broken| broken.rule != "S1" && broken.rule != "S5" || !is_held(heap, broken.address));
    }
    verdict.broken.sort_by_key(|broken| broken.address);
    Ok(verdict)
}

fn is_held(heap: &Heap<'_>, at: u64) -> bool {
    let span = heap.page_of(at).and_then(|page| heap.span_of(page));
    let class = match span {
        Some(Span::Slab { class, own: 0, .. }) => *class,
        Some(Span::Morphed { entry, .. }) => entry.to,
        _ => return false,
    };
    let owner = span.map_or(0, |span| heap.record(span.first()).owner);
    let size = heap.class(class).map_or(0, |c| c.object);
    heap.held.contains(&format!("class of {size} in shard {owner}"))
}
