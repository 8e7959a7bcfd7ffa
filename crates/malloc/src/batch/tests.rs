use super::*;
use std::vec;
use std::vec::Vec;

fn batch(size: usize, n: usize) -> Vec<*mut u8> {
    let mut out = vec![core::ptr::null_mut(); n];
    // SAFETY: room for `n`.
    let got = unsafe { alloc(size, n, out.as_mut_ptr()) };
    assert_eq!(got, n);
    out
}

#[test]
fn objects_of_a_batch_are_distinct_and_writable() {
    for size in [1, 16, 100, 1024, 5000, 100_000, 300_000] {
        let n = if size > 10_000 { 40 } else { 3000 };
        let mut objects = batch(size, n);
        for (i, object) in objects.iter().enumerate() {
            // SAFETY: ours, of this size.
            unsafe { object.write_bytes(i as u8, size) };
        }
        for (i, object) in objects.iter().enumerate() {
            // SAFETY: as above.
            unsafe { assert!(object.read() == i as u8 && object.add(size - 1).read() == i as u8) };
        }
        objects.push(core::ptr::null_mut());
        // SAFETY: ours.
        unsafe { free(&objects, |p, m| panic!("{p:?}: {m:?}")) };
        objects.sort();
        objects.dedup();
        assert_eq!(objects.len(), n + 1);
    }
}

#[test]
fn an_object_that_is_twice_in_a_batch_is_refused_once() {
    // Of a size that no other test requests: it could get the object between its two frees.
    const SIZE: usize = 5120;
    let mut objects = batch(SIZE, 1000);
    objects.push(objects[3]);
    objects.push(objects[999]);
    let mut bad = Vec::new();
    // SAFETY: ours, and the second time no objects.
    unsafe { free(&objects, |p, m| bad.push((p, m))) };
    assert_eq!(bad.len(), 2);
    // Another test may have objects of its size there by now.
    let is_right = |m| matches!(m, Misuse::Freed { .. } | Misuse::Unallocated | Misuse::Inside { .. });
    assert!(bad.iter().all(|b| is_right(b.1)), "{bad:?}");
}
