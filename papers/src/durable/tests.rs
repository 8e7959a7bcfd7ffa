use super::*;
use craton_lab::scratch::Scratch;

#[test]
fn a_write_of_craton_is_in_the_file_after_the_next_opening() {
    let folder = Scratch::new("a test's files").expect("a folder");
    let mut craton = make(CRATON, folder.path()).expect("it is made");
    craton.change(&[0, 7, RECORDS - 1], &[9; BYTES]).expect("it stores");
    craton.commit().expect("it syncs");
    drop(craton);
    let path = c_path(&folder.path().join("heap")).expect("a path");
    let again = DiskFile::open(&path, DiskOptions::new(1 << 30)).expect("it opens");
    let nines = u64::from_le_bytes([9; 8]);
    for (record, word) in [(0, nines), (1, 0), (7, nines), (RECORDS - 1, nines)] {
        let found = again.word(u64::from(record) * PAGE_BYTES + BYTES as u64 - 8);
        assert_eq!(found.load(std::sync::atomic::Ordering::Relaxed), word, "{record}");
    }
}

#[test]
fn databases_take_every_record_where_they_are_installed() {
    let folder = Scratch::new("a test's files").expect("a folder");
    for name in [LMDB, SQLITE, FLUSHES] {
        match make(name, folder.path()) {
            Ok(mut made) => {
                let done = made.change(&[3, 1], &[1; BYTES]).and_then(|()| made.commit());
                done.unwrap_or_else(|why| panic!("{name}: {why}"));
            }
            Err(why) => assert!(why.contains("is not here"), "{name}: {why}"),
        }
    }
}
