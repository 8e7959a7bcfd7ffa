extern crate std;
use super::*;
use crate::huge::Entry;
use craton_sim::SimSystem;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::vec::Vec;

const MIB: usize = 1 << 20;

/// Resident bytes by hugepage, and whole hugepages.
#[derive(Default)]
struct Memory {
    resident: BTreeMap<usize, usize>,
    whole: RefCell<BTreeSet<usize>>,
}

impl Machine for Memory {
    fn cpu(&self) -> usize {
        0
    }

    fn page_size(&self) -> usize {
        4096
    }

    fn touch(&self, _at: usize) -> u64 {
        0
    }

    fn resident(&self, at: usize, _bytes: usize) -> usize {
        self.resident.get(&at).copied().unwrap_or(0)
    }

    fn huge(&self, at: usize, bytes: usize) -> Option<usize> {
        Some(self.whole.borrow().range(at..at + bytes).count() * HUGEPAGE_SIZE)
    }

    fn shut(&self, _at: usize, _bytes: usize, _shut: bool) -> bool {
        false
    }
}

fn table(entries: &[Entry]) -> HugeTable {
    let mut table = HugeTable::EMPTY;
    for entry in entries {
        table.prepare(&SimSystem::default()).unwrap();
        table.insert(*entry);
    }
    table
}

/// Until a whole turn finds nothing.
fn found(table: &mut HugeTable, memory: &Memory) -> Vec<usize> {
    let (mut found, mut vain) = (Vec::new(), 0);
    while vain < 4 {
        match table.next_dense(memory) {
            Some((_, at)) => {
                memory.whole.borrow_mut().insert(at);
                found.push(at);
                vain = 0;
            }
            None => vain += 1,
        }
    }
    found.sort_unstable();
    found
}

#[test]
fn dense_hugepages_on_small_pages_are_found_once_and_others_never() {
    let (a, b, odd) = (64 * MIB, 512 * MIB, 1024 * MIB + 4096);
    let mut table = table(&[
        Entry { at: a, bytes: 35 * MIB },
        Entry { at: b, bytes: 64 * MIB },
        Entry { at: odd, bytes: 40 * MIB },
    ]);
    let mut memory = Memory::default();
    for at in (a..a + 34 * MIB).chain(b..b + 64 * MIB).step_by(2 * MIB) {
        memory.resident.insert(at, 2 * MIB);
    }
    memory.resident.insert(b + 2 * MIB, 4096);
    memory.resident.insert(b + 4 * MIB, 7 * MIB / 4);
    memory.whole.borrow_mut().insert(b + 6 * MIB);
    let seen = found(&mut table, &memory);
    let expected = (a..a + 34 * MIB).chain(b..b + 64 * MIB).step_by(2 * MIB);
    let expected: Vec<usize> = expected.filter(|at| ![b + 2 * MIB, b + 6 * MIB].contains(at)).collect();
    assert_eq!(seen, expected);
    assert_eq!(found(&mut table, &memory), [], "all but the sparse one are whole");
}

#[test]
fn a_table_without_mappings_has_none() {
    assert_eq!(table(&[]).next_dense(&Memory::default()), None);
    assert_eq!(table(&[Entry { at: 64 * MIB, bytes: 35 * MIB }]).next_dense(&Memory::default()), None);
}
