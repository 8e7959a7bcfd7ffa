use super::*;

#[test]
fn a_number_is_new_once() {
    let mut bits = Bits::new(65);
    assert!(bits.insert(64) && !bits.insert(64) && bits.insert(0));
    assert!(bits.has(64) && bits.has(0) && !bits.has(63));
}

#[test]
fn a_number_is_removed_once_also_by_threads() {
    let mut bits = Bits::new(1000);
    (0..1000).filter(|i| i % 3 != 0).for_each(|i| _ = bits.insert(i));
    let shared = SharedBits::from(&bits);
    let removed = || (0..1000).filter(|i| shared.remove(*i)).count();
    let removed: usize = std::thread::scope(|scope| {
        let threads = [(); 3].map(|()| scope.spawn(removed));
        threads.map(|thread| thread.join().unwrap()).iter().sum()
    });
    assert!(removed == 666 && !shared.has(1) && !shared.has(3));
    assert!(bits.remove(1) && !bits.remove(1) && !bits.remove(3) && !bits.has(1));
}
