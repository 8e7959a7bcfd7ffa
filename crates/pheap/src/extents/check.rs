use super::map::Map;
use super::nodes::State;
use super::plan::{ExtentError, PAGE_BYTES, UNIT_PAGES};
use super::{Extents, Inner};

impl Extents {
    /// E1 to E4.
    pub fn check(&self) -> Result<(), ExtentError> {
        let inner = self.lock();
        let Inner { map, log, .. } = &*inner;
        let (mut free, mut used) = ([0; 2], 0);
        let mut before = State::Vacant;
        let mut end = map.first();
        for node in map.iter() {
            let there = &map.nodes[node];
            let broken = |what| Err(ExtentError::Corrupt { what, at: there.page * PAGE_BYTES });
            if there.page != end || map.containing(there.end() - 1) != Some(node) {
                return broken("range that is not found by its last page (E1)");
            }
            let is_small = there.pages < UNIT_PAGES;
            let is_one_unit = there.page / UNIT_PAGES == (there.end() - 1) / UNIT_PAGES;
            match there.state {
                State::Reclaimed | State::Retained if there.state == before => return broken("free neighbours (E2)"),
                State::Reclaimed => free[0] += there.pages,
                State::Retained => free[1] += there.pages,
                State::Vacant => return broken("range without a node (E1)"),
                State::Discarding | State::Log => {}
                State::Live | State::Freeing => {
                    used += 1;
                    if there.pages % UNIT_PAGES == 0 && there.page % UNIT_PAGES != 0 || is_small && !is_one_unit {
                        return broken("extent that is not aligned (E3)");
                    }
                }
            }
            (before, end) = (there.state, there.end());
        }
        let broken = |what, page: u64| Err(ExtentError::Corrupt { what, at: page * PAGE_BYTES });
        if end != map.end() {
            return broken("end of the ranges (E1)", end);
        }
        if free != [map.reclaimed.pages, map.retained.pages] {
            return broken("number of free pages (E4)", 0);
        }
        if used != log.stats().live {
            return broken("number of log entries in use", 0);
        }
        check_ages(map)
    }
}

fn check_ages(map: &Map) -> Result<(), ExtentError> {
    for state in [State::Reclaimed, State::Retained] {
        let mut pages = 0;
        let mut at = map.oldest(state);
        while let Some(node) = at {
            let there = &map.nodes[node];
            if there.state != state {
                return Err(ExtentError::Corrupt { what: "age of a free range (E4)", at: there.page * PAGE_BYTES });
            }
            pages += there.pages;
            at = (there.age.next != u32::MAX).then_some(there.age.next);
        }
        let counted = if state == State::Reclaimed { map.reclaimed.pages } else { map.retained.pages };
        if pages != counted {
            return Err(ExtentError::Corrupt { what: "pages of free ranges by age (E4)", at: 0 });
        }
    }
    Ok(())
}
