use super::{PageTables, Refused, Size, Table, TableFrames};
use std::cell::RefCell;
use std::sync::atomic::AtomicU64;

/// Address 4096 × (i + 1) is table i.
struct Host {
    tables: Vec<Table>,
    free: RefCell<Vec<u64>>,
}

impl Host {
    fn new(tables: usize) -> Self {
        let table = || std::array::from_fn(|_| AtomicU64::new(u64::MAX));
        let free = (1..=tables as u64).map(|i| i * 4096).rev().collect();
        Self { tables: (0..tables).map(|_| table()).collect(), free: RefCell::new(free) }
    }

    fn used(&self) -> usize {
        self.tables.len() - self.free.borrow().len()
    }
}

impl TableFrames for Host {
    fn get(&self) -> Option<u64> {
        self.free.borrow_mut().pop()
    }

    fn put(&self, address: u64) {
        let mut free = self.free.borrow_mut();
        assert!(!free.contains(&address), "{address:#x} twice");
        free.push(address);
    }

    fn table(&self, address: u64) -> &Table {
        &self.tables[(address / 4096 - 1) as usize]
    }
}

const GIB: u64 = 1 << 30;

#[test]
fn each_size_translates_and_gives_its_tables_back() {
    let host = Host::new(16);
    let tables = PageTables::new(&host).unwrap();
    for (size, levels) in [(Size::Frame, 3), (Size::Huge, 2), (Size::Giant, 1)] {
        let (at, to) = (0x7f00_0000_0000, 5 * GIB);
        tables.map(at, to, size).unwrap();
        assert_eq!(host.used(), 1 + levels, "{size:?}");
        assert_eq!(tables.translate(at + size.bytes() - 1), Some(to + size.bytes() - 1));
        assert_eq!(tables.translate(at + size.bytes()), None);
        assert_eq!(tables.unmap(at, size), Ok(to));
        assert_eq!((host.used(), tables.translate(at)), (1, None));
    }
    tables.destroy();
    assert_eq!(host.used(), 0);
}

#[test]
fn neighbours_share_tables() {
    let host = Host::new(16);
    let tables = PageTables::new(&host).unwrap();
    tables.map(0x1000, 0x1000, Size::Frame).unwrap();
    tables.map(0x2000, 0x9000, Size::Frame).unwrap();
    tables.map(GIB, 2 * GIB, Size::Giant).unwrap();
    assert_eq!(host.used(), 4);
    tables.unmap(0x1000, Size::Frame).unwrap();
    assert_eq!((host.used(), tables.translate(0x2010)), (4, Some(0x9010)));
    tables.destroy();
    assert_eq!(host.used(), 0);
}

#[test]
fn wrong_requests_change_nothing() {
    let host = Host::new(16);
    let tables = PageTables::new(&host).unwrap();
    let misaligned = |address, size| Err(Refused::Misaligned { address, size });
    assert_eq!(tables.map(0x1000, 0, Size::Huge), misaligned(0x1000, Size::Huge));
    assert_eq!(tables.map(0, 0x800, Size::Frame), misaligned(0x800, Size::Frame));
    tables.map(0, 0, Size::Huge).unwrap();
    let used = host.used();
    assert_eq!(tables.map(0, 0, Size::Huge), Err(Refused::Mapped { address: 0 }));
    assert_eq!(tables.map(0x1000, 0, Size::Frame), Err(Refused::Mapped { address: 0x1000 }));
    assert_eq!(tables.map(0, 0, Size::Giant), Err(Refused::Mapped { address: 0 }));
    assert_eq!(tables.unmap(0, Size::Frame), Err(Refused::NotMapped { address: 0 }));
    assert_eq!(tables.unmap(0x1000, Size::Huge), Err(Refused::NotMapped { address: 0x1000 }));
    assert_eq!(tables.unmap(GIB, Size::Huge), Err(Refused::NotMapped { address: GIB }));
    assert_eq!(host.used(), used);
}

#[test]
fn a_lack_of_frames_leaves_no_table_behind() {
    for there in 1..4 {
        let host = Host::new(there);
        let tables = PageTables::new(&host).unwrap();
        assert_eq!(tables.map(GIB, 0, Size::Frame), Err(Refused::NoFrames));
        assert_eq!(host.used(), 1, "of {there}");
    }
}
