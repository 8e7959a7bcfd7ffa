//! A floor that grants everything, and counts what would be system calls.

use craton_base::{Advice, Ask, CollapseError, Floor, HugePages, NoMemory, PageRange, Residency};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FloorCounts {
    pub reserve_calls: u64,
    pub back_calls: u64,
    pub unback_calls: u64,
    pub collapse_calls: u64,
    pub advise_calls: u64,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct LeanFloor {
    pub counts: FloorCounts,
}

impl Floor for LeanFloor {
    fn reserve(&mut self, _: HugePages) -> Result<(), NoMemory> {
        self.counts.reserve_calls += 1;
        Ok(())
    }

    fn back(&mut self, _: PageRange) -> Result<(), NoMemory> {
        self.counts.back_calls += 1;
        Ok(())
    }

    fn unback(&mut self, _: PageRange) -> Result<(), NoMemory> {
        self.counts.unback_calls += 1;
        Ok(())
    }

    fn collapse(&mut self, _: PageRange) -> Result<(), CollapseError> {
        self.counts.collapse_calls += 1;
        Ok(())
    }

    fn advise(&mut self, _: PageRange, _: Advice) -> bool {
        self.counts.advise_calls += 1;
        true
    }

    /// A trace has no touches: a span's memory counts as touched.
    fn residency(&self, range: PageRange, ask: Ask) -> Residency {
        let resident_bytes = if ask == Ask::Resident { range.len.bytes().0 } else { 0 };
        Residency { resident_bytes, huge_bytes: None }
    }
}
