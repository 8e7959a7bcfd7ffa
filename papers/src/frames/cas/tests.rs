use super::*;

#[test]
fn a_head_that_comes_back_has_another_tag() {
    let list = ListCas::new(4, 0);
    let request = super::super::request(0, 0);
    let seen = list.head.0.load(Ordering::Relaxed);
    let (a, b) = (list.get(request), list.get(request));
    assert_eq!((a, b), (Some(0), Some(1)));
    assert!(list.put(0, request));
    let now = list.head.0.load(Ordering::Relaxed);
    // Block 0 is first again, and 1, which was behind it, is gone.
    assert!(seen as u32 == now as u32 && seen != now);
    assert_eq!(list.next_of(now).map(|next| next.load(Ordering::Relaxed)), Some(2));
    assert_eq!(after(u64::MAX, 7), 7);
}
