use super::*;
use craton_frames::{Cached, Config, Init, Opened, PersistentZone};
use craton_lab::scratch::Scratch;

const FRAMES: usize = 3 * 16384 + 5;

#[test]
fn a_zone_is_found_again_by_another_mapping() {
    let scratch = Scratch::new("a test").expect("a place");
    let path = scratch.path().join("zone");
    let config = Config::new(1);
    let one = ZoneFile::create(&path, FRAMES, 1).expect("made");
    let zone = PersistentZone::<Standard, _>::create(FRAMES, one.page(), one.metadata(), Init::Free, config, Cached);
    let zone = zone.expect("made");
    let frame = zone.get(super::super::request(3, 0)).expect("room");
    let two = ZoneFile::open(&path, FRAMES, 1).expect("there");
    let found = PersistentZone::<Standard, _>::open(FRAMES, two.page(), two.metadata(), config, Cached);
    let (found, opened) = found.expect("a zone");
    assert!(matches!(opened, Opened::Recovered { .. }));
    assert_eq!((found.is_free(frame), found.free_frames()), (Ok(false), FRAMES - 8));
    for at in [two.page().as_ptr() as usize, two.metadata().children.as_ptr() as usize] {
        assert!(at.is_multiple_of(LINE));
    }
}

#[test]
fn files_of_another_size_and_files_that_are_there_are_refused_by_name() {
    let scratch = Scratch::new("a test").expect("a place");
    let path = scratch.path().join("zone");
    ZoneFile::create(&path, FRAMES, 1).expect("made");
    for wrong in [ZoneFile::create(&path, FRAMES, 1).err(), ZoneFile::open(&path, 2 * FRAMES, 1).err()] {
        assert!(wrong.as_deref().is_some_and(|why| why.contains("zone")), "{wrong:?}");
    }
    assert!(ZoneFile::open(&scratch.path().join("none"), FRAMES, 1).err().is_some_and(|e| e.contains("none")));
}
