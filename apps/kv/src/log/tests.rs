use super::*;
use std::sync::Arc;

/// A crash keeps what was synced, and any part of the rest.
#[derive(Default, Clone)]
struct Disk(Arc<Mutex<(Vec<u8>, Vec<u8>)>>);

impl LogFile for Disk {
    fn write(&self, at: u64, bytes: &[u8]) -> std::io::Result<()> {
        let seen = &mut self.0.lock().unwrap().0;
        let end = at as usize + bytes.len();
        if seen.len() < end {
            seen.resize(end, 0);
        }
        seen[at as usize..end].copy_from_slice(bytes);
        Ok(())
    }

    fn sync(&self) -> std::io::Result<()> {
        let mut state = self.0.lock().unwrap();
        state.1 = state.0.clone();
        Ok(())
    }

    fn read(&self, at: u64, len: usize) -> std::io::Result<Vec<u8>> {
        let seen = &self.0.lock().unwrap().0;
        Ok(seen.iter().skip(at as usize).take(len).copied().collect())
    }

    fn size(&self) -> std::io::Result<u64> {
        Ok(self.0.lock().unwrap().0.len() as u64)
    }
}

fn log(disks: &[Disk; 2]) -> Log {
    Log::new([Box::new(disks[0].clone()), Box::new(disks[1].clone())], 77)
}

/// As a sync point of the heap does.
fn begin(log: &Log, generation: u64, epoch: u64) {
    log.prepare(generation).unwrap();
    log.begin(generation, epoch);
}

fn read(disks: &[Disk; 2], generation: u64) -> Vec<String> {
    let (found, result) = replay(disks, generation);
    result.unwrap();
    found
}

fn replay(disks: &[Disk; 2], generation: u64) -> (Vec<String>, Result<(), ReplayError>) {
    let mut found = Vec::new();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let result = log(disks).replay(generation, |record| {
        found.push(match record {
            Record::Set { key, value } => format!("{}={}", text(key), text(value)),
            Record::Del { key } => format!("{}-", text(key)),
            Record::Clear => "clear".to_owned(),
        });
        Ok(())
    });
    (found, result)
}

fn set(log: &Log, key: &str, epoch: u64) {
    log.append(Record::Set { key: key.as_bytes(), value: b"v" }, epoch);
}

#[test]
fn records_are_read_from_the_heaps_generation_on() {
    let disks = <[Disk; 2]>::default();
    let one = log(&disks);
    begin(&one, 5, 0);
    set(&one, "a", 0);
    one.append(Record::Del { key: b"b" }, 0);
    one.flush().unwrap();
    set(&one, "c", 0);
    // `c` may be in the heap's sync point, and is in the log too.
    begin(&one, 6, 0);
    set(&one, "d", 0);
    one.flush().unwrap();
    assert_eq!(read(&disks, 5), ["a=v", "b-", "c=v", "d=v"]);
    assert_eq!(read(&disks, 6), ["d=v"]);
    begin(&one, 7, 0);
    set(&one, "e", 0);
    one.flush().unwrap();
    assert_eq!(read(&disks, 6), ["d=v", "e=v"]);
    assert_eq!(read(&disks, 7), ["e=v"]);
    assert_eq!(replay(&disks, 8).1, Err(ReplayError::Missing(0)));
    let other = Log::new([Box::new(disks[0].clone()), Box::new(disks[1].clone())], 78);
    assert_eq!(other.replay(6, |_| Ok(())), Err(ReplayError::Missing(0)));
}

#[test]
fn a_log_of_a_generation_without_records_is_needed_too() {
    let disks = <[Disk; 2]>::default();
    assert_eq!(replay(&disks, 3).1, Err(ReplayError::Missing(1)));
    let one = log(&disks);
    begin(&one, 3, 0);
    assert_eq!(read(&disks, 3), [""; 0]);
    set(&one, "a", 0);
    begin(&one, 4, 0);
    set(&one, "b", 0);
    one.flush().unwrap();
    assert_eq!(read(&disks, 3), ["a=v", "b=v"]);
    // Shows that a second file follows.
    *disks[0].0.lock().unwrap() = Default::default();
    assert_eq!(replay(&disks, 3), (vec!["a=v".to_owned()], Err(ReplayError::Missing(0))));
}

#[test]
fn a_damaged_frame_before_a_whole_one_is_named() {
    let disks = <[Disk; 2]>::default();
    let one = log(&disks);
    begin(&one, 2, 0);
    let mut places = Vec::new();
    for key in ["a", "b", "c"] {
        places.push(disks[0].0.lock().unwrap().0.len().max(FIRST as usize).next_multiple_of(8));
        set(&one, key, 0);
        one.flush().unwrap();
    }
    let image = disks[0].0.lock().unwrap().0.clone();
    let frame = FRAME_HEAD + RECORD_HEAD + 2;
    for bit in 0..8 * frame {
        let mut damaged = image.clone();
        damaged[places[1] + bit / 8] ^= 1 << (bit % 8);
        disks[0].0.lock().unwrap().0 = damaged;
        assert_eq!(
            replay(&disks, 2),
            (vec!["a=v".to_owned()], Err(ReplayError::Damaged(0, places[1] as u64))),
            "{bit}"
        );
    }
    for bit in 0..8 * 8 * HEADER_WORDS {
        let mut damaged = image.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        disks[0].0.lock().unwrap().0 = damaged;
        assert_eq!(replay(&disks, 2).1, Err(ReplayError::Missing(0)), "{bit}");
    }
}

struct Full(Disk, Arc<std::sync::atomic::AtomicBool>);

impl LogFile for Full {
    fn write(&self, at: u64, bytes: &[u8]) -> std::io::Result<()> {
        if self.1.load(std::sync::atomic::Ordering::SeqCst) {
            // A part may be written.
            self.0.write(at, &bytes[..bytes.len() / 2])?;
            return Err(Error::from_raw_os_error(28));
        }
        self.0.write(at, bytes)
    }

    fn sync(&self) -> std::io::Result<()> {
        self.0.sync()
    }

    fn read(&self, at: u64, len: usize) -> std::io::Result<Vec<u8>> {
        self.0.read(at, len)
    }

    fn size(&self) -> std::io::Result<u64> {
        self.0.size()
    }
}

#[test]
fn a_flush_that_had_no_room_is_done_again_in_order() {
    let (disks, is_full) = (<[Disk; 2]>::default(), Arc::new(std::sync::atomic::AtomicBool::new(false)));
    let file = |i: usize| Box::new(Full(disks[i].clone(), Arc::clone(&is_full))) as Box<dyn LogFile>;
    let one = Log::new([file(0), file(1)], 77);
    begin(&one, 2, 0);
    is_full.store(true, std::sync::atomic::Ordering::SeqCst);
    set(&one, "a", 0);
    assert_eq!(one.flush(), Err(StoreError::System(28)));
    set(&one, "b", 0);
    assert_eq!(one.flush(), Err(StoreError::System(28)));
    assert_eq!(read(&disks, 2), [""; 0]);
    is_full.store(false, std::sync::atomic::Ordering::SeqCst);
    one.flush().unwrap();
    assert_eq!(read(&disks, 2), ["a=v", "b=v"]);
}

#[test]
fn a_filled_file_keeps_its_records() {
    let disks = <[Disk; 2]>::default();
    let one = log(&disks);
    begin(&one, 2, 0);
    set(&one, "a", 0);
    one.flush().unwrap();
    one.fill(3 << 20).unwrap();
    assert!(disks.iter().all(|disk| disk.size().unwrap() == 3 << 20));
    set(&one, "b", 0);
    one.flush().unwrap();
    assert_eq!(read(&disks, 2), ["a=v", "b=v"]);
}

#[test]
fn changes_of_a_cleared_tree_are_dropped_wherever_their_records_are() {
    let disks = <[Disk; 2]>::default();
    let one = log(&disks);
    begin(&one, 1, 3);
    set(&one, "old", 3);
    set(&one, "new", 4);
    one.append(Record::Clear, 4);
    set(&one, "late", 3);
    set(&one, "newer", 4);
    one.flush().unwrap();
    begin(&one, 2, 4);
    one.append(Record::Clear, 5);
    one.flush().unwrap();
    assert_eq!(read(&disks, 1), ["old=v", "clear", "new=v", "newer=v", "clear"]);
    assert_eq!(read(&disks, 2), ["clear"]);
}

#[test]
fn a_torn_frame_is_no_frame() {
    let disks = <[Disk; 2]>::default();
    let one = log(&disks);
    begin(&one, 2, 0);
    set(&one, "a", 0);
    one.flush().unwrap();
    let whole = disks[0].0.lock().unwrap().0.len();
    set(&one, "b", 0);
    one.flush().unwrap();
    let image = disks[0].0.lock().unwrap().0.clone();
    for at in whole..image.len() {
        for flip in [true, false] {
            let mut torn = image.clone();
            if flip {
                torn[at] ^= 4
            } else {
                torn.truncate(at)
            }
            disks[0].0.lock().unwrap().0 = torn;
            // Bytes between frames count for neither.
            let found = read(&disks, 2);
            assert!(
                found == ["a=v"] || found == ["a=v", "b=v"] && flip && at < whole.next_multiple_of(8),
                "{at} {found:?}"
            );
        }
    }
}

#[test]
fn frames_of_another_session_are_not_read() {
    let disks = <[Disk; 2]>::default();
    let one = log(&disks);
    begin(&one, 5, 0);
    for key in ["a", "b", "c"] {
        set(&one, key, 0);
        one.flush().unwrap();
    }
    // An older copy of the heap begins the generation anew.
    let two = log(&disks);
    begin(&two, 5, 0);
    set(&two, "z", 0);
    two.flush().unwrap();
    assert_eq!(read(&disks, 5), ["z=v"]);
}
