use super::*;
use craton_lab::scratch::Scratch;

#[test]
fn what_is_about_to_be_done_is_read_as_it_was_written() {
    let all = [Doing::Nothing, Doing::Getting(10), Doing::Got(1 << 36, 10), Doing::Place(77, 0)];
    assert_eq!(all.map(|doing| Doing::of(doing.word())), all);
}

#[test]
fn holders_have_their_own_frames_across_words() {
    let scratch = Scratch::new("a test").expect("a place");
    let path = scratch.path().join("records");
    let records = Records::create(&path, 1000, 2).expect("made");
    records.set(1, 0, 9, true);
    records.set(1, 8, 3, false);
    let other = Records::open(&path, 1000, 2).expect("there");
    let held = |records: &Records, holder| records.map(holder).iter().map(|w| load(w).count_ones()).sum::<u32>();
    assert_eq!([0, 1, 2].map(|holder| held(&other, holder)), [0, 504, 0]);
    assert!(other.holds_any(1, 4, 3) && !other.holds_any(1, 8, 3) && !other.holds_any(0, 0, 9));
}

#[test]
fn settled_maps_have_what_was_got_and_lack_what_is_in_doubt() {
    let scratch = Scratch::new("a test").expect("a place");
    let records = Records::create(&scratch.path().join("records"), 1000, 3).expect("made");
    let doing = [Doing::Got(64, 1), Doing::Place(0, 2), Doing::Getting(3)];
    for (thread, doing) in doing.into_iter().enumerate() {
        records.set(thread, 2, 0, true);
        records.set_doing(thread, doing);
    }
    assert_eq!(records.settle(), doing);
    assert!(records.holds_any(0, 64, 1) && !records.holds_any(1, 0, 2) && records.holds_any(2, 2, 0));
    assert_eq!(records.settle(), [Doing::Nothing; 3]);
}
