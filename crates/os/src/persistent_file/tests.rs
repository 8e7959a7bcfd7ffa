extern crate std;
use super::*;
use crate::tests::Tree;
use craton_base::{Medium, Space};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::vec::Vec;

const SIZE: u64 = 1 << 20;
const OPTIONS: FileOptions = FileOptions::new(16 * SIZE);

pub(crate) fn path(tree: &Tree, name: &str) -> CString {
    CString::new(tree.path(name).as_os_str().as_bytes()).unwrap()
}

fn folders() -> Vec<Tree> {
    let memory = std::path::Path::new("/dev/shm");
    let mut folders = std::vec![Tree::new()];
    folders.extend(memory.is_dir().then(|| Tree::within(memory)));
    folders
}

fn create(tree: &Tree) -> PersistentFile {
    PersistentFile::create(&path(tree, "heap"), SIZE, OPTIONS).unwrap()
}

fn open(tree: &Tree, options: FileOptions) -> Result<PersistentFile, FileError> {
    PersistentFile::open(&path(tree, "heap"), options)
}

fn store_and_find(medium: &impl Medium, tree: &Tree) {
    medium.store(8, 7);
    assert_eq!(medium.update(8, 8, 2), 7);
    medium.store_line(128, &[1, 2, 3, 4, 5, 6, 7, 8]);
    medium.flush(8);
    medium.fence();
    assert_eq!(medium.word(8).load(Ordering::Relaxed), 13);
    let file = std::fs::read(tree.path("heap")).unwrap();
    assert_eq!((file[8], file[128], file[184], file.len() as u64), (13, 1, 8, SIZE));
}

#[test]
fn stores_of_either_medium_reach_the_file() {
    for tree in folders() {
        store_and_find(&Cached::new(create(&tree)), &tree);
        std::fs::remove_file(tree.path("heap")).unwrap();
        if let Ok(medium) = Flushed::new(create(&tree)) {
            store_and_find(&medium, &tree);
        }
    }
}

#[test]
fn contents_are_there_when_opened_again() {
    let tree = Tree::new();
    let medium = Cached::new(create(&tree));
    medium.store(SIZE - 8, 7);
    assert_eq!(medium.file().promise(), Promise::ProcessCrash);
    drop(medium);
    let medium = Cached::new(open(&tree, OPTIONS).unwrap());
    assert_eq!((medium.len(), medium.word(SIZE - 8).load(Ordering::Relaxed)), (SIZE, 7));
}

#[test]
fn the_choice_decides_the_medium() {
    struct Flushes;
    impl UseMedium for Flushes {
        type Output = bool;
        fn call<M: Medium + Space + 'static>(self, _: M) -> bool {
            M::FLUSHES
        }
    }
    let tree = Tree::new();
    drop(create(&tree));
    let flushes = |choice| open(&tree, OPTIONS).unwrap().with_medium(choice, Flushes);
    assert_eq!(flushes(WriteBackChoice::Auto), Ok(false));
    assert_eq!(flushes(WriteBackChoice::None), Ok(false));
    let flush = if crate::WriteBack::detect().is_some() { Ok(true) } else { Err(FileError::NoWriteBack) };
    assert_eq!(flushes(WriteBackChoice::Flush), flush);
    assert_eq!(WriteBackChoice::parse(b"flush"), Some(WriteBackChoice::Flush));
    assert_eq!(WriteBackChoice::parse(b"maybe"), None);
}

#[test]
fn a_file_opens_once_or_for_many_readers() {
    let tree = Tree::new();
    let reader = FileOptions { access: Access::ReadOnly, ..OPTIONS };
    let file = create(&tree);
    assert_eq!(open(&tree, OPTIONS).unwrap_err(), FileError::InUse);
    assert_eq!(open(&tree, reader).unwrap_err(), FileError::InUse);
    drop(file);
    let (first, _second) = (open(&tree, reader).unwrap(), open(&tree, reader).unwrap());
    assert_eq!(open(&tree, OPTIONS).unwrap_err(), FileError::InUse);
    let first = Cached::new(first);
    first.store(0, 9);
    assert_eq!(first.word(0).load(Ordering::Relaxed), 9, "a reader's stores stay with it");
    assert_eq!(std::fs::read(tree.path("heap")).unwrap()[0], 0);
    let refused = Err(SpaceError::System(libc::EROFS));
    assert_eq!((first.resize(2 * SIZE), first.discard(0, 4096)), (refused, refused));
}

#[test]
fn bad_files_are_refused_by_name() {
    let tree = Tree::new();
    assert_eq!(open(&tree, OPTIONS).unwrap_err(), FileError::Missing);
    drop(create(&tree));
    let again = PersistentFile::create(&path(&tree, "heap"), SIZE, OPTIONS);
    assert_eq!(again.unwrap_err(), FileError::Exists);
    let small = FileOptions { limit: SIZE / 2, ..OPTIONS };
    assert_eq!(open(&tree, small).unwrap_err(), FileError::TooLong(SIZE));
    let huge = FileOptions { limit: 1 << 60, ..OPTIONS };
    assert!(matches!(open(&tree, huge).unwrap_err(), FileError::AddressSpace(_) | FileError::System("mmap", _)));
    tree.file("heap", "");
    assert_eq!(open(&tree, OPTIONS).unwrap_err(), FileError::Length(0));
    tree.file("heap", "short");
    assert_eq!(open(&tree, OPTIONS).unwrap_err(), FileError::Length(5));
    let folder = PersistentFile::open(&path(&tree, ""), OPTIONS);
    assert_eq!(folder.unwrap_err(), FileError::NotAFile);
    let device = PersistentFile::open(c"/dev/null", OPTIONS);
    assert_eq!(device.unwrap_err(), FileError::NotAFile);
    let nowhere = PersistentFile::create(&path(&tree, "no/heap"), SIZE, OPTIONS);
    assert_eq!(nowhere.unwrap_err(), FileError::Missing);
}

#[test]
fn a_failed_creation_leaves_no_file() {
    let tree = Tree::new();
    let huge = FileOptions { limit: 1 << 60, ..OPTIONS };
    PersistentFile::create(&path(&tree, "heap"), SIZE, huge).unwrap_err();
    assert_eq!(PersistentFile::create(&path(&tree, "heap"), 5, OPTIONS).unwrap_err(), FileError::Length(5));
    let short = PersistentFile::create(&path(&tree, "heap"), 32 * SIZE, OPTIONS);
    assert_eq!(short.unwrap_err(), FileError::TooLong(32 * SIZE));
    assert!(!tree.path("heap").exists());
}

#[test]
fn a_file_grows_and_shrinks_and_new_bytes_are_zero() {
    for tree in folders() {
        let medium = Cached::new(create(&tree));
        medium.resize(2 * SIZE).unwrap();
        medium.store(2 * SIZE - 8, 9);
        medium.resize(SIZE).unwrap();
        medium.resize(3 * SIZE).unwrap();
        assert_eq!(medium.word(2 * SIZE - 8).load(Ordering::Relaxed), 0);
        assert_eq!((medium.limit(), medium.resize(17 * SIZE)), (16 * SIZE, Err(SpaceError::Full)));
        assert_eq!(medium.resize(5), Err(SpaceError::System(libc::EINVAL)));
        let file = std::fs::metadata(tree.path("heap")).unwrap();
        assert_eq!((file.len(), medium.len()), (3 * SIZE, 3 * SIZE));
        assert_eq!(file.blocks() * 512, 3 * SIZE, "the room is reserved");
    }
}

#[test]
fn a_sparse_file_takes_room_when_asked_and_gives_it_back() {
    for tree in folders() {
        let sparse = FileOptions { room: Room::Sparse, ..OPTIONS };
        let medium = Cached::new(PersistentFile::create(&path(&tree, "heap"), SIZE, sparse).unwrap());
        medium.resize(8 * SIZE).unwrap();
        let room = || std::fs::metadata(tree.path("heap")).unwrap().blocks() * 512;
        assert_eq!(room(), 0);
        medium.allocate(SIZE, SIZE).unwrap();
        medium.store(SIZE, 7);
        assert_eq!(room(), SIZE);
        medium.discard(SIZE, SIZE).unwrap();
        assert_eq!((room(), medium.word(SIZE).load(Ordering::Relaxed)), (0, 0));
        assert_eq!(medium.discard(SIZE, 16 * SIZE), Err(SpaceError::Full), "beyond the end");
    }
}

pub(crate) fn in_child(f: impl FnOnce() -> Option<bool>) -> Option<bool> {
    // SAFETY: the child uses its copies; the allocator survives the fork.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::_exit(f().map_or(2, |is_right| i32::from(!is_right)));
        }
        let mut status = 0;
        libc::waitpid(child, &mut status, 0);
        assert!(libc::WIFEXITED(status), "status {status}");
        (libc::WEXITSTATUS(status) != 2).then(|| libc::WEXITSTATUS(status) == 0)
    }
}

pub(crate) fn mount(folder: &std::ffi::CStr, flags: u64) -> Option<()> {
    // SAFETY: valid texts; only this process sees the mount.
    let answers = unsafe {
        let nothing = core::ptr::null();
        [
            libc::unshare(libc::CLONE_NEWNS),
            libc::mount(nothing, c"/".as_ptr(), nothing, libc::MS_REC | libc::MS_PRIVATE, nothing.cast()),
            libc::mount(c"none".as_ptr(), folder.as_ptr(), c"tmpfs".as_ptr(), flags, c"size=2m".as_ptr().cast()),
        ]
    };
    answers.iter().all(|answer| *answer == 0).then_some(())
}

#[test]
fn a_limit_on_file_sizes_is_an_error_and_no_signal() {
    let tree = Tree::new();
    let medium = Cached::new(create(&tree));
    let is_right = in_child(|| {
        let low = libc::rlimit { rlim_cur: 2 * SIZE, rlim_max: libc::RLIM_INFINITY };
        // SAFETY: valid limits.
        unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &low) };
        Some(medium.resize(3 * SIZE) == Err(SpaceError::Full) && medium.len() == SIZE)
    });
    assert_eq!(is_right, Some(true));
}

#[test]
fn a_full_disk_refuses_growth_and_room() {
    let tree = Tree::new();
    let is_right = in_child(|| {
        mount(&path(&tree, ""), 0)?;
        let medium = Cached::new(PersistentFile::create(&path(&tree, "heap"), SIZE, OPTIONS).unwrap());
        let grown = medium.resize(4 * SIZE) == Err(SpaceError::Full) && medium.len() == SIZE;
        let sparse = FileOptions { room: Room::Sparse, ..OPTIONS };
        let other = Cached::new(PersistentFile::create(&path(&tree, "other"), 4 * SIZE, sparse).unwrap());
        let room = other.allocate(0, 2 * SIZE) == Err(SpaceError::Full);
        let third = PersistentFile::create(&path(&tree, "third"), 2 * SIZE, OPTIONS);
        Some(grown && room && third.unwrap_err() == FileError::Full(libc::ENOSPC) && !tree.path("third").exists())
    });
    assert!(is_right.unwrap_or(true));
}

#[test]
fn a_file_system_that_can_only_be_read_is_named() {
    let tree = Tree::new();
    let is_right = in_child(|| {
        mount(&path(&tree, ""), 0)?;
        drop(create(&tree));
        let flags = libc::MS_REMOUNT | libc::MS_RDONLY;
        // SAFETY: valid texts.
        let answer = unsafe {
            libc::mount(core::ptr::null(), path(&tree, "").as_ptr(), core::ptr::null(), flags, core::ptr::null())
        };
        let made = PersistentFile::create(&path(&tree, "new"), SIZE, OPTIONS).unwrap_err();
        let reader = FileOptions { access: Access::ReadOnly, ..OPTIONS };
        let opened = (open(&tree, OPTIONS).unwrap_err(), open(&tree, reader).is_ok());
        (answer == 0).then_some(made == FileError::ReadOnly && opened == (FileError::ReadOnly, true))
    });
    assert!(is_right.unwrap_or(true));
}

#[test]
fn a_file_that_the_user_may_not_change_is_denied_or_read() {
    let tree = Tree::new();
    drop(create(&tree));
    std::fs::set_permissions(tree.path("heap"), std::fs::Permissions::from_mode(0o400)).unwrap();
    let reader = FileOptions { access: Access::ReadOnly, ..OPTIONS };
    assert!(open(&tree, reader).is_ok());
    // SAFETY: no preconditions.
    if unsafe { libc::geteuid() } != 0 {
        assert_eq!(open(&tree, OPTIONS).unwrap_err(), FileError::Denied(libc::EACCES));
    }
}

#[test]
#[should_panic(expected = "no 8 aligned bytes at 1048576 of a medium of 1048576 bytes")]
fn a_word_beyond_the_end_is_named() {
    let tree = Tree::new();
    Cached::new(create(&tree)).word(SIZE);
}

#[test]
#[should_panic(expected = "no 64 aligned bytes at 32 of a medium")]
fn a_line_that_is_not_aligned_is_named() {
    let tree = Tree::new();
    Cached::new(create(&tree)).store_line(32, &[0; 8]);
}

#[test]
fn a_copy_of_the_open_file_shows_every_store() {
    let tree = Tree::new();
    let medium = Cached::new(create(&tree));
    medium.store(4096, 5);
    let mut word = [0; 8];
    std::fs::File::open(tree.path("heap")).unwrap().read_exact_at(&mut word, 4096).unwrap();
    assert_eq!(u64::from_le_bytes(word), 5);
}
