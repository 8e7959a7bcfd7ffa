use super::*;
use crate::testing::process;

fn ended(pid: u32, peak_rss_bytes: u64) -> Process {
    Process { ended: Some("process 1 has ended".to_owned()), peak_rss_bytes, ..process(pid, "one") }
}

#[test]
fn large_processes_stay_when_many_small_ones_end_after_them() {
    let mut all = vec![process(1, "runs"), ended(2, 900), ended(3, 1)];
    for pid in 100..200 {
        all.push(ended(pid, 10));
        drop_surplus(&mut all);
    }
    let pids: Vec<u32> = all.iter().map(|p| p.pid).collect();
    assert_eq!(pids.len(), 1 + MOST_ENDED);
    assert!(pids.starts_with(&[1, 2]) && !pids.contains(&3), "{pids:?}");
    assert!((200 - LAST_ENDED as u32..200).all(|pid| pids.contains(&pid)), "{pids:?}");
}

#[test]
fn as_long_as_there_is_room_none_is_dropped() {
    let mut all: Vec<Process> = (0..MOST_ENDED as u32).map(|pid| ended(pid, 1)).collect();
    drop_surplus(&mut all);
    assert_eq!(all.len(), MOST_ENDED);
}
