use super::*;
use craton_lab::scratch::Scratch;

#[test]
fn blocks_are_what_the_map_says() {
    let scratch = Scratch::new("a test").expect("a place");
    let records = Records::create(&scratch.path().join("records"), 4096, 1).expect("made");
    for (frame, order) in [(512, 9), (1024, 6), (1091, 0), (4095, 0)] {
        records.set(0, frame, order, true);
    }
    assert_eq!(blocks(&records, 0), [(512, 9), (1024, 6), (1091, 0), (4095, 0)]);
    assert!(blocks(&records, 1).is_empty());
}
