//! Compares the zone with the threads' records after a crash. Frames are lost only if an allocation
//! has not reached the caller, or a free has not reached the bit (LLFree §3.2.3): at most one
//! request for each processor.

use super::records::{Doing, Records, WORD_FRAMES};
use crate::frames::request;
use craton_base::atomic::Ordering::Relaxed;
use craton_frames::{Media, Standard, Zone};
use std::collections::BTreeSet;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    pub under_way: usize,
    pub losing: usize,
    pub lost: Vec<usize>,
    pub held: usize,
}

/// Corrects the records. Error: zone and records disagree.
pub fn audit<M: Media>(zone: &Zone<'_, Standard, M>, records: &Records) -> Result<Audit, String> {
    zone.check().map_err(|broken| format!("invariant {} does not hold at {}", broken.invariant, broken.at))?;
    let doing = records.settle();
    let under_way = doing.iter().filter(|doing| **doing != Doing::Nothing).count();
    let most: usize = doing.iter().map(|doing| in_doubt(*doing).map_or(0, |order| 1 << order)).sum();
    let maps: Vec<_> = (0..=records.threads()).map(|holder| records.map(holder)).collect();
    let (mut lost, mut held) = (Vec::new(), 0);
    for word in 0..records.frames().div_ceil(WORD_FRAMES) {
        let first = word * WORD_FRAMES;
        let mut by_any = 0;
        for bits in maps.iter().map(|map| map[word].load(Relaxed)) {
            let twice = by_any & bits;
            if twice != 0 {
                return Err(format!("frame {} is held twice", first + twice.trailing_zeros() as usize));
            }
            by_any |= bits;
        }
        held += by_any.count_ones() as usize;
        for frame in first..(first + WORD_FRAMES).min(records.frames()) {
            let is_free = zone.is_free(frame).map_err(|why| format!("frame {frame}: {why}"))?;
            match (is_free, by_any >> (frame - first) & 1 == 1) {
                (true, true) => return Err(format!("frame {frame} is held, and free")),
                (false, false) if lost.len() == most => {
                    return Err(format!("frame {frame} and {most} others are lost, more than requests under way had"));
                }
                (false, false) => lost.push(frame),
                _ => {}
            }
        }
    }
    let losing = losing(&lost, &doing)?;
    let free = zone.free_frames();
    if free + held + lost.len() != records.frames() {
        return Err(format!("{free} frames count as free, {held} are held, and {} are lost", lost.len()));
    }
    Ok(Audit { under_way, losing, lost, held })
}

pub fn free_lost<M: Media>(zone: &Zone<'_, Standard, M>, lost: &[usize]) -> Result<(), String> {
    lost.iter().try_for_each(|frame| zone.put(*frame, request(0, 0)).map_err(|why| format!("take back: {why}")))
}

fn in_doubt(doing: Doing) -> Option<u32> {
    match doing {
        Doing::Getting(order) | Doing::Place(_, order) => Some(order),
        Doing::Nothing | Doing::Got(..) => None,
    }
}

/// Gets account for blocks of their order, others for their place.
fn losing(lost: &[usize], doing: &[Doing]) -> Result<usize, String> {
    let lost: BTreeSet<usize> = lost.iter().copied().collect();
    let within = |frame: usize, doing: &Doing| matches!(doing, Doing::Place(at, order) if (*at..at + (1 << order)).contains(&frame));
    let open: BTreeSet<usize> =
        lost.iter().copied().filter(|frame| !doing.iter().any(|doing| within(*frame, doing))).collect();
    let gets: Vec<u32> =
        doing.iter().filter_map(|d| if let Doing::Getting(order) = d { Some(*order) } else { None }).collect();
    let used = cover(&open, &gets, &lost).ok_or_else(|| {
        format!("frames {open:?} are lost, and the requests under way, {doing:?}, do not account for them")
    })?;
    let places = doing.iter().filter(|doing| lost.iter().any(|frame| within(*frame, doing))).count();
    Ok(used + places)
}

/// The fewest gets that account for all of `open`, a whole block each.
fn cover(open: &BTreeSet<usize>, gets: &[u32], lost: &BTreeSet<usize>) -> Option<usize> {
    let Some(first) = open.first() else { return Some(0) };
    let with = |at: usize| {
        let block = first >> gets[at] << gets[at]..(first >> gets[at] << gets[at]) + (1 << gets[at]);
        let is_lost = block.clone().all(|frame| lost.contains(&frame));
        let rest: BTreeSet<usize> = open.iter().copied().filter(|frame| !block.contains(frame)).collect();
        let others: Vec<u32> = [&gets[..at], &gets[at + 1..]].concat();
        if is_lost { cover(&rest, &others, lost).map(|used| used + 1) } else { None }
    };
    (0..gets.len()).filter_map(with).min()
}

#[cfg(test)]
mod tests;
