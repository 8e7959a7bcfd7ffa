//! Rebuilds the ranges of a heap (NVAlloc §4.4). Gaps between extents count as reclaimed, since
//! their memory is unknown.

use super::map::Map;
use super::nodes::State;
use super::plan::{ExtentError, ExtentKind, PAGE_BYTES, UNIT_PAGES};
use super::{ExtentConfig, Extents};
use crate::book_log::{BookLog, Slot};
use craton_base::Medium;

struct Found {
    page: u64,
    pages: u64,
    state: State,
    slot: Slot,
    kind: ExtentKind,
    at: u64,
}

impl Extents {
    /// Call after redo. Before the first plan, redone words must be durable and their epochs
    /// settled.
    pub fn rebuild<M: Medium>(medium: &M, config: ExtentConfig) -> Result<Self, ExtentError> {
        let first = config.data / PAGE_BYTES;
        let end = (medium.len() / PAGE_BYTES).max(first);
        let corrupt = |(what, at)| ExtentError::Corrupt { what, at };
        let (log, live) = BookLog::open(medium, config.log, config.data..end * PAGE_BYTES).map_err(corrupt)?;

        let extent = |live: &crate::book_log::Live| Found {
            page: live.page,
            pages: u64::from(live.pages),
            state: State::Live,
            slot: live.slot,
            kind: if live.is_slab { ExtentKind::Slab } else { ExtentKind::Object },
            at: live.at,
        };
        let unit = |at: u64| Found {
            page: at / PAGE_BYTES,
            pages: UNIT_PAGES,
            state: State::Log,
            slot: Slot::NOWHERE,
            kind: ExtentKind::Object,
            at,
        };
        let mut found: Vec<Found> = live.iter().map(extent).chain(log.units().map(unit)).collect();
        found.sort_unstable_by_key(|range| range.page);

        let mut map = Map::new(first);
        map.reserve(end, found.len());
        for range in found {
            let range_end = range.page + range.pages;
            if range.pages == 0 || range.page < map.end() || range_end > end {
                let what = match range.state {
                    State::Live => "log entry of an extent, which overlaps another or the end of the file",
                    _ => "log chunk in an extent",
                };
                return Err(corrupt((what, range.at)));
            }
            if range.page > map.end() {
                map.extend(range.page, State::Reclaimed);
            }
            let node = map.extend(range_end, range.state);
            (map.nodes[node].slot, map.nodes[node].kind) = (range.slot, range.kind);
        }
        if end > map.end() {
            map.extend(end, State::Reclaimed);
        }
        Ok(Self::over(map, log))
    }
}
