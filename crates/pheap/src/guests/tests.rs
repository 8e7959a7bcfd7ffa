use super::*;
use crate::arena::{Arena, all_free};

#[test]
fn a_class_of_guests_holds_its_objects() {
    for (class, size) in SIZES.iter().enumerate() {
        let Some(granules) = granules_of(class) else {
            assert!(*size <= 32);
            continue;
        };
        assert!((LEAST..=MOST).contains(&granules));
        assert!(class_for(granules) >= class && u64::from(SIZES[class_for(granules)]) <= u64::from(granules) * GRANULE);
    }
}

/// One in each gap after another.
fn places(bits: &Granules, granules: u32) -> Vec<Guest> {
    let mut placed = Vec::new();
    gaps(bits, |first, end| {
        placed.extend(
            (first..=end.saturating_sub(granules)).step_by(granules as usize).map(|first| Guest { first, granules }),
        )
    });
    placed
}

#[test]
fn guests_fill_the_gaps_between_objects() {
    for (number, stripes) in [(6, 1), (9, 6), (40, 6)] {
        let class = Class::new(number, stripes);
        let mut taken = crate::slab::unused_bits(&class);
        for index in (0..class.objects).filter(|index| index % 7 < 3) {
            let mid = class.mid_of(index);
            taken[(mid / 64) as usize] |= 1 << (mid % 64);
        }
        let mut guests = Guests::new(&class);
        let mut covered = Vec::new();
        let granules = 2 * class.size.div_ceil(32);
        let placed = places(&in_use(&class, &taken, None), granules);
        assert!(placed.len() as u32 >= class.objects / 7, "{number}: {}", placed.len());
        for guest in &placed {
            assert!(guest.covers(&class).all(|index| index % 7 >= 3), "{number}: {guest:?}");
            guests.add(&class, *guest, |mid| covered.push(mid));
        }
        // Neighbours still cover what they share.
        let bits = in_use(&class, &taken, Some(&guests));
        assert_eq!(places(&bits, granules), []);
        for guest in &placed {
            guests.remove(&class, *guest, |mid| covered.retain(|other| *other != mid));
        }
        assert!(covered.is_empty());
        assert_eq!(guests, Guests::new(&class));
    }
}

#[test]
fn a_slab_with_a_guest_behind_its_objects_is_not_empty() {
    let number = class_of(12_800);
    let class = Class::new(number, 6);
    let guest = Guest { first: GRANULES - 3, granules: 3 };
    assert!(guest.covers(&class).is_empty(), "no room behind the objects");
    let mut arena = Arena::new(true);
    let index = arena.insert(1 << 20, number, all_free(&class), class.objects);
    arena.relist(index, class.objects);
    assert_eq!(arena.spare(number), Some(index));
    arena.slabs[index].add_guest(&class, guest);
    arena.relist(index, class.objects);
    assert_eq!((arena.spare(number), arena.empty_of_another(number + 1)), (None, None));
    arena.release_guest(index, &class, guest);
    assert_eq!(arena.spare(number), Some(index));
}
