use super::*;
use std::sync::Arc;

/// A disk file in memory: a crash keeps what was synced, and any part of the rest.
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
}

fn log(disks: &[Disk; 2]) -> Log {
    Log::new([Box::new(disks[0].clone()), Box::new(disks[1].clone())], 77)
}

fn read(disks: &[Disk; 2], generation: u64) -> Vec<String> {
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
    result.unwrap();
    found
}

fn set(log: &Log, key: &str, epoch: u64) {
    log.append(Record::Set { key: key.as_bytes(), value: b"v" }, epoch);
}

#[test]
fn records_are_read_from_the_heaps_generation_on() {
    let disks = <[Disk; 2]>::default();
    let one = log(&disks);
    one.begin(5, 0);
    set(&one, "a", 0);
    one.append(Record::Del { key: b"b" }, 0);
    one.flush().unwrap();
    set(&one, "c", 0);
    // The heap's sync point comes between: `c` may be in it, and is in the log too.
    one.begin(6, 0);
    set(&one, "d", 0);
    one.flush().unwrap();
    assert_eq!(read(&disks, 5), ["a=v", "b-", "c=v", "d=v"]);
    assert_eq!(read(&disks, 6), ["d=v"]);
    one.begin(7, 0);
    set(&one, "e", 0);
    one.flush().unwrap();
    assert_eq!(read(&disks, 6), ["d=v", "e=v"]);
    assert_eq!(read(&disks, 7), ["e=v"]);
    assert_eq!(read(&disks, 8), [""; 0]);
    assert!(
        Log::new([Box::new(disks[0].clone()), Box::new(disks[1].clone())], 78)
            .replay(6, |_| Err(StoreError::NoMemory))
            .is_ok()
    );
}

#[test]
fn changes_of_a_cleared_tree_are_dropped_wherever_their_records_are() {
    let disks = <[Disk; 2]>::default();
    let one = log(&disks);
    one.begin(1, 3);
    set(&one, "old", 3);
    set(&one, "new", 4);
    one.append(Record::Clear, 4);
    set(&one, "late", 3);
    set(&one, "newer", 4);
    one.flush().unwrap();
    one.begin(2, 4);
    one.append(Record::Clear, 5);
    one.flush().unwrap();
    assert_eq!(read(&disks, 1), ["old=v", "clear", "new=v", "newer=v", "clear"]);
    assert_eq!(read(&disks, 2), ["clear"]);
}

#[test]
fn a_torn_frame_is_no_frame() {
    let disks = <[Disk; 2]>::default();
    let one = log(&disks);
    one.begin(2, 0);
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
            // Bytes between the frames are of neither.
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
    one.begin(5, 0);
    for key in ["a", "b", "c"] {
        set(&one, key, 0);
        one.flush().unwrap();
    }
    // A copy of the heap, from before, begins the same generation anew.
    let two = log(&disks);
    two.begin(5, 0);
    set(&two, "z", 0);
    two.flush().unwrap();
    assert_eq!(read(&disks, 5), ["z=v"]);
}
