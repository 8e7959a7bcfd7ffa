extern crate std;
use crate::*;
use craton_base::{Advice, Ask, Clock, Floor, HugePageId, HugePages, NoMemory, PageId, PageRange, Pages};
use std::vec::Vec;

pub(crate) struct Tree(std::string::String);

impl Tree {
    pub(crate) fn new() -> Self {
        Self::within(&std::env::temp_dir())
    }

    pub(crate) fn within(parent: &std::path::Path) -> Self {
        static NEXT: core::sync::atomic::AtomicU32 = core::sync::atomic::AtomicU32::new(0);
        let next = NEXT.fetch_add(1, core::sync::atomic::Ordering::Relaxed);
        let dir = parent.join(std::format!("craton-os-tree-{}-{next}", process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Self(dir.into_os_string().into_string().unwrap())
    }

    pub(crate) fn root(&self) -> &[u8] {
        self.0.as_bytes()
    }

    pub(crate) fn path(&self, path: &str) -> std::path::PathBuf {
        std::path::Path::new(&self.0).join(path)
    }

    pub(crate) fn file(&self, path: &str, text: &str) -> &Self {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn region(capacity: u32) -> Region {
    Region::new(HugePages(capacity), HugePages(1), &[PartSpec { bytes_per_hugepage: 80 }]).expect("address space")
}

#[test]
fn a_region_is_usable_where_granted_and_reads_as_zeros() {
    let mut region = region(64);
    region.reserve(HugePages(2)).unwrap();
    assert_eq!(region.base() % HugePages(1).bytes().0, 0);
    let bytes = region.base() as *mut u8;
    // SAFETY: two hugepages were granted.
    unsafe {
        assert_eq!(*bytes.add(HugePages(2).bytes().0 - 1), 0);
        *bytes = 7;
        *(region.part(0) as *mut u8).add(159) = 1;
    }
    let first = PageRange::new(PageId(0), Pages(1));
    assert_eq!(region.residency(first, Ask::Both).resident_bytes, process::page_size());
    region.unback(first).unwrap();
    // SAFETY: still granted.
    assert_eq!(unsafe { *bytes }, 0);
    region.advise(HugePageId(1).range(), Advice::Huge);
    assert_eq!(region.reserve(HugePages(65)), Err(NoMemory));
    assert_eq!(region.granted(), HugePages(2));
}

#[test]
fn a_region_that_reserves_nothing_takes_address_space_as_it_grows() {
    let mut region = Region::unreserved(HugePages(1 << 20), &[PartSpec { bytes_per_hugepage: 80 }]).unwrap();
    let other = Region::unreserved(HugePages(1 << 20), &[PartSpec { bytes_per_hugepage: 80 }]).unwrap();
    assert_eq!(other.base(), region.base(), "nothing is taken yet");
    let huge = HugePages(1).bytes().0;
    for granted in [1, 2, 50] {
        region.reserve(HugePages(granted)).unwrap();
        // SAFETY: granted: the last byte and the table's last entry.
        unsafe {
            let last = (region.base() + granted as usize * huge - 1) as *mut u8;
            assert_eq!(*last, 0);
            *last = 1;
            *(region.part(0) as *mut u8).add(granted as usize * 80 - 1) = 1;
        }
    }
    let way = region.base() + 60 * huge;
    let in_the_way = crate::region::map_at(way, process::page_size()).unwrap();
    assert_eq!(in_the_way, way);
    assert_eq!(region.reserve(HugePages(61)), Err(NoMemory));
    region.reserve(HugePages(60)).unwrap();
    assert_eq!(region.granted(), HugePages(60));
    crate::mapping::unmap(in_the_way, process::page_size());
    region.reserve(HugePages(61)).unwrap();
    let third = Region::unreserved(HugePages(1 << 20), &[PartSpec { bytes_per_hugepage: 80 }]).unwrap();
    assert_ne!(third.base(), region.base());
}

#[test]
fn a_mapping_is_aligned_and_keeps_its_contents_when_it_moves() {
    let page = process::page_size();
    let at = mapping::map(16 * page, 1 << 22).unwrap();
    assert_eq!(at % (1 << 22), 0);
    // SAFETY: ours, sixteen pages long.
    unsafe { *(at as *mut u8).add(page) = 9 };
    let to = mapping::remap(at, 16 * page, 4096 * page).unwrap();
    // SAFETY: the contents moved along.
    assert_eq!(unsafe { *(to as *mut u8).add(page) }, 9);
    mapping::unmap(to, 4096 * page);
    assert_eq!(mapping::map(usize::MAX - page + 1, page), None);
}

#[test]
fn a_mutex_that_is_held_is_refused_to_who_only_tries_and_stays_held() {
    let mutex = Mutex::new(1);
    let held = mutex.lock();
    assert!(mutex.try_lock().is_none());
    assert!(mutex.try_lock().is_none(), "the first try has not given the lock up");
    drop(held);
    *mutex.try_lock().unwrap() = 2;
    assert_eq!(*mutex.lock(), 2);
}

#[test]
fn a_mutex_lets_one_thread_in_at_a_time() {
    let total = Mutex::new(0u64);
    std::thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| (0..20_000).for_each(|_| *total.lock() += 1));
        }
    });
    assert_eq!(*total.lock(), 80_000);
}

#[test]
fn a_line_formats_numbers_and_cuts_what_does_not_fit() {
    let line = Line::new().text("n=").number(0).text(" m=").number(u64::MAX).text(" a=").address(0xdead0);
    assert_eq!(line.as_bytes(), b"n=0 m=18446744073709551615 a=0xdead0");
    assert_eq!(Line::new().text("name \"").bytes(b"a\nb\x1b[2J").text("\"").as_bytes(), b"name \"a?b?[2J\"");
    let long: Vec<u8> = std::vec![b'x'; 2 * Line::CAPACITY];
    assert_eq!(Line::new().bytes(&long).as_bytes().len(), Line::CAPACITY - 1);
}

#[test]
fn the_process_knows_its_page_size_and_the_clock_runs() {
    assert!(process::page_size().is_power_of_two());
    assert!(process::physical_memory() > 0);
    let before = CoarseClock.now_ns();
    assert!(before > 0 && CoarseClock.now_ns() >= before);
    assert!(!process::is_privileged());
}

fn file(name: &str) -> (std::path::PathBuf, Vec<u8>) {
    let path = std::env::temp_dir().join(std::format!("craton-os-{name}-{}", process::id()));
    let mut bytes = path.to_str().expect("a path of text").as_bytes().to_vec();
    bytes.push(0);
    (path, bytes)
}

#[test]
fn a_file_map_grows_by_windows_and_is_cut_at_the_end() {
    let (path, bytes) = file("windows");
    std::fs::write(&path, "what was there before").unwrap();
    let first = FileMap::create(&bytes, 1 << 16).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 1 << 16);
    first.store(16, [1, 2]);
    assert_eq!(FileMap::create(&bytes, 1 << 16).unwrap_err(), file_map::IN_USE);
    let second = first.next(1 << 16, 1 << 16).unwrap();
    second.store((1 << 16) - 16, [3, 4]);
    first.unmap();
    let text = std::fs::read(&path).unwrap();
    assert_eq!(text.len(), 1 << 17);
    assert_eq!((text[0], text[16], text[24]), (0, 1, 2), "stores are in the file at once");
    assert_eq!((text[text.len() - 16], text[text.len() - 8]), (3, 4));
    second.finish(4096);
    assert_eq!(std::fs::read(&path).unwrap(), text[..4096]);
    FileMap::create(&bytes, 4096).unwrap().leave();
    assert!(std::fs::read(&path).unwrap().iter().all(|byte| *byte == 0));
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn what_is_no_file_is_refused_with_a_reason() {
    let refused = |path: &[u8]| file_map::reason(FileMap::create(path, 4096).unwrap_err());
    assert_eq!(refused(b"/dev/null\0"), Some("not an ordinary file"));
    assert_eq!(refused(b"/tmp\0"), Some("it is a folder"));
    assert_eq!(refused(b"/no/such/folder/file\0"), Some("no such folder"));
}

#[test]
fn discarded_memory_reads_as_zeros_and_can_be_used_even_if_it_was_locked() {
    let (page, pages) = (process::page_size(), 64);
    for locks in [false, true] {
        let at = mapping::map(pages * page, page).unwrap();
        // SAFETY: the test's mapping.
        let memory = unsafe { core::slice::from_raw_parts_mut(at as *mut u8, pages * page) };
        memory.fill(7);
        // SAFETY: as above.
        let is_locked = locks && unsafe { libc::mlock((at + 8 * page) as *const _, 4 * page) } == 0;
        mapping::discard(at + 4 * page, 16 * page);
        assert!(memory[4 * page..20 * page].iter().all(|byte| *byte == 0), "locked: {is_locked}");
        assert!(memory[..4 * page].iter().chain(&memory[20 * page..]).all(|byte| *byte == 7));
        memory.fill(8);
        mapping::unmap(at, pages * page);
    }
}
