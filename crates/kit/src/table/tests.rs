use super::*;

#[test]
fn records_are_found_changed_and_removed_however_many_there_are() {
    let table = Table::new();
    let address = |n: usize| 0x10_0000_0000 + 16 * n;
    let n = 40_000;
    for i in 0..n {
        assert!(table.insert(Buffer { address: address(i), size: i, ..Default::default() }));
    }
    assert!(!table.insert(Buffer { address: address(7), ..Default::default() }), "there is one already");
    for i in (0..n).step_by(3) {
        assert_eq!(table.with(address(i), |b| (b.size, Then::Remove)), Some(i));
    }
    for i in 0..n {
        let found = table.with(address(i), |b| {
            b.size += 1;
            (b.size, Then::Remove)
        });
        assert_eq!(found, (!i.is_multiple_of(3)).then_some(i + 1), "{i}");
    }
    let mut left = 0;
    table.each(|b| left += usize::from((address(0)..address(n)).contains(&b.address)));
    assert_eq!(left, 0);
}

#[test]
fn an_entry_can_be_found_by_a_condition_and_its_memory_is_known() {
    let table = Table::new();
    assert!(table.get(16).is_none() && table.find_where(|_| true).is_none());
    for i in 1..=3000usize {
        assert!(table.insert(Buffer { address: 16 * i, size: i, ..Default::default() }));
    }
    assert_eq!(table.find_where(|b| b.size == 77).map(|b| b.address), Some(16 * 77));
    assert_eq!(table.get(16 * 5).map(|b| b.size), Some(5));
    let (mut seen, mut bytes) = (0, 0);
    table.each_in_copy(|_| seen += 1);
    table.ranges(&mut |at, len| {
        assert!(at != 0);
        bytes += len;
    });
    assert!(seen == 3000 && bytes >= 3000 * size_of::<Buffer>());
    (1..=3000).for_each(|i| table.prefetch(16 * i));
}

#[test]
fn the_locks_held_for_a_fork_come_free_again() {
    let table = Table::new();
    table.lock_for_fork(false);
    assert!(table.parts.iter().all(|part| part.try_lock().is_none()));
    // SAFETY: taken just now.
    unsafe { table.release_after_fork() };
    assert!(table.insert(Buffer { address: 16, ..Default::default() }));
}
