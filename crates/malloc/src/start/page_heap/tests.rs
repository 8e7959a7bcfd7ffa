use super::*;
use craton_base::{Density, FrameSource};

#[test]
fn frames_are_offline_at_first_and_every_page_can_be_had() {
    let (frames, [at_once, each]) = frames(HugePages(100)).unwrap();
    frames.zone().check().unwrap();
    assert_eq!((frames.zone().frames(), frames.zone().free_frames()), (25_600, 0));
    assert!(at_once > 200 && each == 64, "{at_once} {each}");
    frames.online(99 * 256, 1).unwrap();
    let first = frames.get(3, Density::Dense).unwrap();
    assert!(first >= 99 * 256 && first % 8 == 0);
    frames.put(first, 3).unwrap();
    frames.put(first + 3, 5).unwrap();
    assert!(frames.put(first, 1).is_err());
    assert_eq!(frames.zone().free_frames(), 256);
    frames.offline(99 * 256, 1).unwrap();
    assert!(frames.get(0, Density::Sparse).is_err());
}

#[test]
fn the_option_counts_until_there_is_a_heap_and_then_names_what_there_is() {
    let choice = Choice::new();
    assert_eq!(choice.name(), "temeraire");
    assert!(choice.set(b"frames") && choice.name() == "frames" && !choice.set(b"other"));
    assert!(choice.set(b"temeraire") && choice.set(b"frames"));
    assert!(choice.wants_frames(|_| unreachable!("it was set")));
    choice.record(false);
    assert!(choice.name() == "temeraire" && choice.set(b"temeraire") && !choice.set(b"frames"));
}

#[test]
fn unless_it_was_set_the_option_is_looked_up_when_the_heap_begins() {
    let choice = Choice::new();
    assert!(!choice.wants_frames(|_| ()));
    assert!(choice.wants_frames(|each| {
        each(b"temeraire");
        each(b"frames");
        each(b"nonsense");
    }));
    choice.record(true);
    assert!(choice.name() == "frames" && choice.set(b"frames") && !choice.set(b"temeraire"));
}
