use super::*;

#[test]
fn a_head_that_comes_back_has_another_tag() {
    let list = List::new(4, 0, Cas::default());
    let request = super::super::request(0, 0);
    let seen = list.heads.0.load(Ordering::Relaxed);
    let (a, b) = (list.get(request), list.get(request));
    assert_eq!((a, b), (Some(0), Some(1)));
    assert!(list.put(0, request));
    let now = list.heads.0.load(Ordering::Relaxed);
    // Block 0 is first again, and 1, which was behind it, is gone.
    assert!(seen as u32 == now as u32 && seen != now);
    assert_eq!(list.places[now as u32 as usize].next.load(Ordering::Relaxed), 2);
    assert_eq!(Cas::after(u64::MAX, 7), 7);
}
