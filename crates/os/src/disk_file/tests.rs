extern crate std;
use super::*;
use crate::persistent_file::tests::{in_child, mount, path};
use crate::tests::Tree;
use craton_base::{Medium, Space, SpaceError};
use std::os::unix::fs::MetadataExt;
use std::thread;

const SIZE: u64 = 1 << 20;
const WAYS: [Tracking; 2] = [Tracking::Recorded, Tracking::Compared];

fn options(tracking: Tracking) -> DiskOptions {
    DiskOptions { tracking, ..DiskOptions::new(16 * SIZE) }
}

fn create(tree: &Tree, tracking: Tracking) -> DiskFile {
    DiskFile::create(&path(tree, "heap"), SIZE, options(tracking)).unwrap()
}

fn open(tree: &Tree, tracking: Tracking) -> Result<DiskFile, FileError> {
    DiskFile::open(&path(tree, "heap"), options(tracking))
}

fn load(file: &DiskFile, at: u64) -> u64 {
    file.word(at).load(Ordering::Relaxed)
}

fn sync(file: &DiskFile) -> Synced {
    file.sync(|| ()).unwrap()
}

#[test]
fn an_opener_finds_the_last_sync_point() {
    for way in WAYS {
        let tree = Tree::new();
        let file = create(&tree, way);
        file.store(8, 1);
        file.store_line(SIZE - 64, &[2; 8]);
        assert_eq!(sync(&file).pages, 2);
        file.store(8, 3);
        drop(file);
        let file = open(&tree, way).unwrap();
        assert_eq!((load(&file, 8), load(&file, SIZE - 8)), (1, 2));
        assert!(file.was_left_open());
        assert_eq!(sync(&file), Synced::default(), "what the journal holds is not new");
    }
}

#[test]
fn each_link_to_a_file_finds_its_journal() {
    let tree = Tree::new();
    let link = path(&tree, "link");
    drop(create(&tree, Tracking::Recorded));
    std::os::unix::fs::symlink("heap", link.to_str().unwrap()).unwrap();
    let file = DiskFile::open(&link, options(Tracking::Recorded)).unwrap();
    file.store(8, 1);
    sync(&file);
    drop(file);
    let file = open(&tree, Tracking::Recorded).unwrap();
    assert_eq!(load(&file, 8), 1);
    file.store(8, 2);
    sync(&file);
    file.close().unwrap();
    let file = DiskFile::open(&link, options(Tracking::Recorded)).unwrap();
    assert_eq!((load(&file, 8), file.was_left_open()), (2, false));
}

#[test]
fn a_sync_writes_the_pages_changed_since_the_last() {
    for way in WAYS {
        let tree = Tree::new();
        let file = create(&tree, way);
        (0..100).for_each(|page| file.store(page * PAGE_BYTES, page + 1));
        assert_eq!(sync(&file).pages, 100);
        file.store(5 * PAGE_BYTES, 0);
        file.store(7 * PAGE_BYTES, 1);
        assert_eq!(sync(&file), Synced { pages: 2, bytes: 2 * PAGE_BYTES }, "a zero page needs no contents");
        assert_eq!(sync(&file).pages, 0);
    }
}

#[test]
fn a_checkpoint_writes_home_and_release_gives_memory_back() {
    for way in WAYS {
        let tree = Tree::new();
        let file = create(&tree, way);
        (0..256).for_each(|page| file.store(page * PAGE_BYTES, page + 1));
        sync(&file);
        assert_eq!(file.release(|| ()).unwrap(), 0, "not home");
        file.store(0, 77);
        file.checkpoint().unwrap();
        assert_eq!(file.journal_bytes(), PAGE_BYTES);
        let home = std::fs::read(tree.path("heap")).unwrap();
        assert!((0..256).all(|page| home[page * PAGE_BYTES as usize] == (page + 1) as u8), "of the last sync");
        assert_eq!(file.release(|| ()).unwrap(), 255 * PAGE_BYTES, "one page has changed");
        assert_eq!((load(&file, 0), load(&file, 9 * PAGE_BYTES)), (77, 10));
        file.store(9 * PAGE_BYTES, 11);
        assert_eq!(sync(&file).pages, 2);
        drop(file);
        let file = open(&tree, way).unwrap();
        assert_eq!([0, 1, 9].map(|page| load(&file, page * PAGE_BYTES)), [77, 2, 11]);
        file.close().unwrap();
        assert!(!tree.path("heap.journal").exists());
        let file = open(&tree, way).unwrap();
        assert_eq!([0, 1, 9].map(|page| load(&file, page * PAGE_BYTES)), [77, 2, 11]);
    }
}

/// Of some machines of 64-bit Arm and Power. A file of theirs ends at any page of 4 KiB.
#[test]
fn a_machine_of_larger_pages_opens_the_file_and_drops_whole_pages_of_its_own() {
    for way in WAYS {
        for machine_page in [16 << 10, 64 << 10] {
            let tree = Tree::new();
            let pages = 256 + 3;
            let file = DiskFile::create(&path(&tree, "heap"), pages * PAGE_BYTES, options(way)).unwrap();
            (0..pages).for_each(|page| file.store(page * PAGE_BYTES, page + 1));
            sync(&file);
            drop(file);
            let mut file = open(&tree, way).unwrap();
            file.machine_page = machine_page;
            (0..pages).for_each(|page| file.store(page * PAGE_BYTES + 8, page + 1));
            sync(&file);
            file.checkpoint().unwrap();
            let changed = 100;
            file.store(changed * PAGE_BYTES, 77);
            let released = file.release(|| ()).unwrap() as usize;
            let kept = pages as usize * PAGE_BYTES as usize - released;
            assert!(released.is_multiple_of(machine_page) && kept >= machine_page, "{released}");
            // The changed page's machine page, and parts of one at both ends.
            assert!(kept <= 3 * machine_page, "{released}");
            for page in 0..pages {
                let first = if page == changed { 77 } else { page + 1 };
                assert_eq!((load(&file, page * PAGE_BYTES), load(&file, page * PAGE_BYTES + 8)), (first, page + 1));
            }
            sync(&file);
            file.close().unwrap();
            let file = open(&tree, way).unwrap();
            assert_eq!((load(&file, changed * PAGE_BYTES), load(&file, (pages - 1) * PAGE_BYTES)), (77, pages));
        }
    }
}

#[test]
fn growth_is_part_of_a_sync() {
    for way in WAYS {
        let tree = Tree::new();
        let file = create(&tree, way);
        file.resize(2 * SIZE).unwrap();
        file.store(2 * SIZE - 8, 5);
        sync(&file);
        file.resize(4 * SIZE).unwrap();
        file.store(4 * SIZE - 8, 5);
        drop(file);
        let file = open(&tree, way).unwrap();
        assert_eq!((file.len(), load(&file, 2 * SIZE - 8)), (2 * SIZE, 5));
        file.resize(4 * SIZE).unwrap();
        assert_eq!(load(&file, 4 * SIZE - 8), 0);
        assert_eq!(file.resize(17 * SIZE), Err(SpaceError::Full));
    }
}

#[test]
fn a_shorter_file_is_long_until_the_next_sync_and_grows_with_zeros() {
    for way in WAYS {
        for has_checkpoint in [false, true] {
            let tree = Tree::new();
            let file = create(&tree, way);
            file.store(SIZE - 8, 5);
            sync(&file);
            file.checkpoint().unwrap();
            file.resize(SIZE / 2).unwrap();
            drop(file);
            let file = open(&tree, way).unwrap();
            assert_eq!((file.len(), load(&file, SIZE - 8)), (SIZE, 5), "no sync");
            file.resize(SIZE / 2).unwrap();
            sync(&file);
            if has_checkpoint {
                file.checkpoint().unwrap();
                assert_eq!(std::fs::metadata(tree.path("heap")).unwrap().len(), SIZE / 2);
            }
            file.resize(SIZE).unwrap();
            assert_eq!(load(&file, SIZE - 8), 0);
            sync(&file);
            drop(file);
            let file = open(&tree, way).unwrap();
            assert_eq!((file.len(), load(&file, SIZE - 8)), (SIZE, 0));
            file.store(SIZE - 8, 5);
            assert_eq!(sync(&file).pages, 1);
        }
    }
}

#[test]
fn discarded_pages_give_their_room_back_at_a_checkpoint() {
    let tree = Tree::new();
    let file = create(&tree, Tracking::Recorded);
    (0..256).for_each(|page| file.store(page * PAGE_BYTES, 1));
    sync(&file);
    file.checkpoint().unwrap();
    file.discard(16 * PAGE_BYTES, 128 * PAGE_BYTES).unwrap();
    assert_eq!(load(&file, 20 * PAGE_BYTES), 0);
    assert_eq!(sync(&file), Synced { pages: 128, bytes: PAGE_BYTES });
    let room = || std::fs::metadata(tree.path("heap")).unwrap().blocks() * 512;
    assert_eq!(room(), SIZE);
    file.checkpoint().unwrap();
    assert_eq!(room(), SIZE - 128 * PAGE_BYTES);
    assert_eq!(file.release(|| ()).unwrap(), SIZE);
    assert_eq!((load(&file, 20 * PAGE_BYTES), load(&file, 0)), (0, 1));
}

#[test]
fn a_file_is_opened_once_and_needs_its_kind() {
    let tree = Tree::new();
    let file = create(&tree, Tracking::Recorded);
    assert_eq!(open(&tree, Tracking::Recorded).err(), Some(FileError::InUse));
    drop(file);
    tree.file("heap.journal", "not a journal");
    assert_eq!(open(&tree, Tracking::Recorded).err(), Some(FileError::Journal));
    assert_eq!(DiskFile::open(&path(&tree, ""), options(Tracking::Recorded)).err(), Some(FileError::NotAFile));
    let again = DiskFile::create(&path(&tree, "heap"), SIZE, options(Tracking::Recorded));
    assert_eq!(again.err(), Some(FileError::Exists));
}

#[test]
fn threads_share_a_sync() {
    let tree = Tree::new();
    let file = create(&tree, Tracking::Recorded);
    let writes = AtomicU64::new(0);
    thread::scope(|scope| {
        for thread in 0..8 {
            let (file, writes) = (&file, &writes);
            scope.spawn(move || {
                for round in 1..=20 {
                    file.store(thread * PAGE_BYTES, round);
                    let synced = sync(file);
                    writes.fetch_add(u64::from(synced.pages > 0), Ordering::Relaxed);
                }
            });
        }
    });
    assert!(writes.load(Ordering::Relaxed) < 8 * 20, "{writes:?}");
    drop(file);
    let file = open(&tree, Tracking::Recorded).unwrap();
    assert!((0..8).all(|thread| load(&file, thread * PAGE_BYTES) == 20));
}

#[test]
fn a_checkpoint_runs_beside_syncs() {
    let tree = Tree::new();
    let file = create(&tree, Tracking::Recorded);
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for round in 1..=60 {
                (0..16).for_each(|page| file.store((round * 7 + page * 3) % 256 * PAGE_BYTES, round));
                file.store(8, round);
                sync(&file);
            }
        });
        while !writer.is_finished() {
            file.checkpoint().unwrap();
        }
    });
    let expected: std::vec::Vec<_> = (0..SIZE / 8).map(|word| load(&file, 8 * word)).collect();
    file.checkpoint().unwrap();
    drop(file);
    let file = open(&tree, Tracking::Recorded).unwrap();
    let is_same = |word: u64| MARK_BYTES.contains(&(8 * word)) || load(&file, 8 * word) == expected[word as usize];
    assert!((0..SIZE / 8).all(is_same));
}

#[test]
fn a_file_is_opened_with_its_own_journal_alone() {
    let tree = Tree::new();
    let journal = |name: &str| tree.path(&std::format!("{name}.journal"));
    for name in ["heap", "other"] {
        let file = DiskFile::create(&path(&tree, name), SIZE, options(Tracking::Recorded)).unwrap();
        file.store(8, name.len() as u64);
        sync(&file);
    }
    let open = || open(&tree, Tracking::Recorded).map(|file| load(&file, 8));
    let plain = || PersistentFile::open(&path(&tree, "heap"), FileOptions::new(16 * SIZE)).map(drop);
    let check = || check_journal(&path(&tree, "heap"));
    assert_eq!((plain(), check()), (Err(FileError::LeftOpen), Ok(())));
    std::fs::rename(journal("heap"), journal("kept")).unwrap();
    assert_eq!(
        (open(), plain(), check()),
        (Err(FileError::NoJournal), Err(FileError::LeftOpen), Err(FileError::NoJournal))
    );
    assert!(!journal("heap").exists());
    std::fs::copy(journal("other"), journal("heap")).unwrap();
    assert_eq!((open(), check()), (Err(FileError::OtherJournal), Err(FileError::OtherJournal)));
    std::fs::copy(journal("kept"), journal("heap")).unwrap();
    assert_eq!(open(), Ok(4));
    self::open(&tree, Tracking::Recorded).unwrap().close().unwrap();
    assert_eq!((plain(), check()), (Ok(()), Ok(())));
    // An older copy comes back.
    std::fs::rename(journal("kept"), journal("heap")).unwrap();
    assert_eq!((open(), check()), (Err(FileError::OtherJournal), Err(FileError::OtherJournal)));
    std::fs::remove_file(journal("heap")).unwrap();
    assert_eq!(open(), Ok(4));
}

#[test]
fn a_lost_journal_loses_its_sync_points_alone() {
    let tree = Tree::new();
    let file = create(&tree, Tracking::Recorded);
    file.store(8, 1);
    sync(&file);
    file.checkpoint().unwrap();
    file.store(8, 2);
    sync(&file);
    drop(file);
    std::fs::remove_file(tree.path("heap.journal")).unwrap();
    assert_eq!(open(&tree, Tracking::Recorded).err(), Some(FileError::NoJournal));
    let lossy = DiskOptions { loses_journal: true, ..options(Tracking::Recorded) };
    let file = DiskFile::open(&path(&tree, "heap"), lossy).unwrap();
    assert_eq!(load(&file, 8), 1);
    file.store(8, 3);
    sync(&file);
    drop(file);
    // A journal that is there counts.
    assert_eq!(load(&DiskFile::open(&path(&tree, "heap"), lossy).unwrap(), 8), 3);
}

#[test]
fn a_full_disk_keeps_the_last_sync_point_and_later_syncs_succeed() {
    let tree = Tree::new();
    for way in WAYS {
        let is_right = in_child(|| {
            mount(&path(&tree, ""), 0)?;
            let file = DiskFile::create(&path(&tree, "heap"), SIZE / 2, options(way)).unwrap();
            file.store(0, 1);
            sync(&file);
            std::fs::write(tree.path("other"), std::vec![1; SIZE as usize + SIZE as usize / 4]).unwrap();
            (0..128).for_each(|page| file.store(page * PAGE_BYTES, 2));
            let in_memory = file.promise() == Promise::ProcessCrash && !file.was_left_open();
            let full = file.sync(|| ()) == Err(FileError::Full(libc::ENOSPC));
            let grown = file.resize(2 * SIZE) == Err(SpaceError::Full) && file.len() == SIZE / 2;
            let released = file.release(|| ()) == Ok(0);
            drop(file);
            let file = open(&tree, way).unwrap();
            let stands = (load(&file, 0), load(&file, PAGE_BYTES)) == (1, 0);
            (0..128).for_each(|page| file.store(page * PAGE_BYTES, 3));
            let again = file.sync(|| ()).is_err();
            std::fs::remove_file(tree.path("other")).unwrap();
            let synced = sync(&file).pages == 128;
            drop(file);
            let file = open(&tree, way).unwrap();
            let found = (0..128).all(|page| load(&file, page * PAGE_BYTES) == 3);
            Some(in_memory && full && grown && released && stands && again && synced && found)
        });
        assert!(is_right.unwrap_or(true), "{way:?}");
    }
}

#[test]
fn a_killed_process_leaves_a_sync_point() {
    for round in 0..10 {
        let tree = Tree::new();
        drop(create(&tree, Tracking::Recorded));
        // SAFETY: the child uses the file alone, until killed.
        unsafe {
            let child = libc::fork();
            if child == 0 {
                let file = open(&tree, Tracking::Recorded).unwrap();
                for value in 1.. {
                    (0..32).for_each(|page| file.store(page * 8 * PAGE_BYTES, value));
                    let _ = file.sync(|| ());
                    if value % 9 == 0 {
                        let _ = file.checkpoint();
                    }
                }
            }
            libc::usleep(15_000 + 7_000 * round);
            libc::kill(child, libc::SIGKILL);
            libc::waitpid(child, core::ptr::null_mut(), 0);
        }
        let file = open(&tree, Tracking::Recorded).unwrap();
        let first = load(&file, 0);
        assert!((0..32).all(|page| load(&file, page * 8 * PAGE_BYTES) == first), "round {round}");
    }
}
