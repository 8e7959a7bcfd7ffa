use super::*;
use std::thread;

#[test]
fn each_thread_has_its_words() {
    let number = thread_id();
    let uses = count_use();
    thread::spawn(move || {
        assert_ne!(thread_id(), number);
        assert_eq!(count_use(), 0);
        assert_eq!((count_use(), count_use()), (1, 2));
        assert!(!is_inside());
        assert_eq!((swap_inside(1), is_inside(), swap_inside(0)), (0, true, 1));
        set_building(64);
        assert_eq!(building(), 64);
        set_building(0);
    })
    .join()
    .unwrap();
    assert_eq!((thread_id(), count_use()), (number, uses + 1));
}

#[test]
fn the_places_of_threads_without_a_cache_are_told_apart() {
    let places = [none(), gone(), visitor(), alone()];
    for (i, place) in places.iter().enumerate() {
        assert!(is_none(*place) && places.iter().skip(i + 1).all(|other| other != place));
    }
    let elsewhere = core::ptr::without_provenance_mut(0x10_0000);
    assert!(!is_none(elsewhere));
}

#[test]
fn own_is_the_pointer_unless_it_is_one_of_these_places() {
    thread::spawn(|| {
        for place in [none(), gone(), visitor(), alone()] {
            set(place);
            assert_eq!((get(), own()), (place, None));
        }
        let cache = core::ptr::without_provenance_mut(0x10_0000);
        set(cache);
        assert_eq!(own(), Some(cache));
        set(none());
    })
    .join()
    .unwrap();
}

#[test]
fn a_number_is_asked_for_anew_after_it_was_forgotten_or_is_shared() {
    thread::spawn(|| {
        let number = thread_id();
        clear_number();
        assert_eq!(thread_id(), number);
        share_number();
        assert_eq!((thread_id(), thread_id()), (number, number));
        clear_number();
    })
    .join()
    .unwrap();
}
