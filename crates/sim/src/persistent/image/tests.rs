use super::*;
use crate::SimMedium;
use craton_base::{Medium, Space};
use std::collections::HashSet;

const SIZE: u64 = 8 * PAGE_BYTES;

fn medium() -> SimMedium {
    SimMedium::new(SIZE, 2 * SIZE)
}

#[test]
fn lines_are_chosen_independently() {
    let medium = medium();
    medium.store(0, 1);
    medium.store(64, 1);
    medium.store(64, 2);
    let found: HashSet<_> =
        medium.now().images(100, &mut Rng::new(1)).map(|image| (image.word(0), image.word(64))).collect();
    assert_eq!(found, HashSet::from([(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]));
}

#[test]
fn new_images_are_those_that_the_moment_before_lacks() {
    let (medium, mut rng) = (medium(), Rng::new(2));
    medium.record();
    for round in 0..300 {
        let at = 8 * rng.below(40);
        match rng.below(5) {
            0 => medium.flush(at),
            1 => medium.fence(),
            2 => medium.store_line(at / 64 * 64, &[round, 0, 0, 0, 0, 0, 0, rng.below(2)]),
            _ => medium.store(at, rng.below(3)),
        }
        if round % 7 == 0 {
            (0..40).for_each(|word| medium.flush(8 * word));
            medium.fence();
        }
    }
    let all = |moment: &Moment| -> HashSet<u128> {
        moment.images(1 << 20, &mut Rng::new(3)).map(|image| image.digest()).collect()
    };
    let mut before: Option<HashSet<u128>> = None;
    for moment in medium.take_moments() {
        let images = all(&moment);
        let new: Vec<_> = moment.new_images(1 << 20, &mut rng).map(|image| image.digest()).collect();
        if let Some(before) = before {
            let expected: HashSet<_> = images.difference(&before).copied().collect();
            assert_eq!(new.len(), expected.len());
            assert_eq!(new.into_iter().collect::<HashSet<_>>(), expected);
        } else {
            assert_eq!(new.len(), images.len());
        }
        before = Some(images);
    }
}

#[test]
fn of_too_many_images_some_are_chosen_with_the_extremes() {
    let medium = medium();
    (0..40).for_each(|line| medium.store(64 * line, line + 1));
    let moment = medium.now();
    let images: Vec<_> = moment.images(100, &mut Rng::new(1)).collect();
    assert!((90..=100).contains(&images.len()), "{}", images.len());
    let digests: HashSet<_> = images.iter().map(Image::digest).collect();
    assert_eq!(digests.len(), images.len(), "no image twice");
    assert!(digests.contains(&moment.seen().digest()));
    assert!(digests.contains(&moment.durable().digest()));
    let kept = |image: &Image| (0..40).filter(|line| image.word(64 * line) != 0).count();
    assert!(images.iter().filter(|image| kept(image) == 1).count() > 20);
    assert!(images.iter().filter(|image| kept(image) == 39).count() > 20);
    assert!(images.iter().any(|image| (10..30).contains(&kept(image))));
    let again: Vec<_> = moment.images(100, &mut Rng::new(1)).map(|image| image.digest()).collect();
    assert_eq!(again, images.iter().map(Image::digest).collect::<Vec<_>>(), "a seed repeats");
}

#[test]
fn digests_are_of_contents_alone() {
    let (a, b) = (medium(), medium());
    a.store(64, 5);
    a.store(64, 0);
    a.flush(64);
    a.fence();
    assert_eq!(a.now().seen().digest(), b.now().seen().digest());
    a.store(128, 5);
    assert_ne!(a.now().seen().digest(), b.now().seen().digest());
    b.store(120, 5);
    assert_ne!(a.now().seen().digest(), b.now().seen().digest());
    let bytes = a.now().seen().to_bytes();
    assert_eq!(Image::from_bytes(&bytes, 2 * SIZE).digest(), a.now().seen().digest());
    a.resize(SIZE + PAGE_BYTES).unwrap();
    assert_ne!(Image::from_bytes(&bytes, 2 * SIZE).digest(), a.now().seen().digest());
}

#[test]
fn an_image_can_be_damaged_and_cut() {
    let medium = medium();
    medium.store(SIZE - 8, 7);
    let mut image = medium.now().seen();
    image.set_word(8, 3);
    image.set_len(PAGE_BYTES);
    assert_eq!((image.len(), image.word(8)), (PAGE_BYTES, 3));
    image.set_len(SIZE);
    assert_eq!(image.word(SIZE - 8), 0);
}
