use super::world::with_world;
use craton_slab::object::ObjectLayout;

/// Refuses the `n`th request, or all from then on; returns whether it came to that.
fn with_refusal(layout: ObjectLayout, objects: usize, n: u32, from_then_on: bool) -> bool {
    let mut refused = false;
    with_world(layout, 700, |world| {
        (world.supplier.refuse, world.supplier.from_then_on) = (Some(n), from_then_on);
        let mut failures = 0;
        while world.out.len() < objects && failures < 2 {
            let before = (world.slabs.stats(), world.slabs.bytes());
            if world.alloc_many(objects - world.out.len()) == 0 {
                failures += 1;
                assert_eq!((world.slabs.stats(), world.slabs.bytes()), before, "nothing has changed");
            }
        }
        refused = world.supplier.requests > n;
        assert_eq!(world.out.len() == objects, !(refused && from_then_on && failures > 0));
        // Shrinking the table may be refused too.
        while let Some(i) = world.out.len().checked_sub(1) {
            world.free(i, true);
        }
        world.reap(2);
        refused |= world.supplier.requests > n;
        world.supplier.refuse = None;
        assert!(world.alloc());
    });
    refused
}

#[test]
fn a_refused_request_changes_nothing_and_the_next_one_serves() {
    // Records in the slab; apart; slabs on two grains of a growing table.
    for (size, objects) in [(1000, 40), (4096, 130), (9000, 60)] {
        let layout = ObjectLayout::of(size, 0, true).unwrap();
        for from_then_on in [false, true] {
            let refusals = (0..).take_while(|n| with_refusal(layout, objects, *n, from_then_on)).count();
            assert!(refusals >= 4, "{refusals}");
        }
    }
}

#[test]
fn a_slab_of_which_the_record_or_the_table_is_refused_goes_back() {
    // The first slab takes two requests.
    let layout = ObjectLayout::of(4096, 0, false).unwrap();
    assert!(layout.is_apart());
    with_world(layout, 10, |world| {
        world.supplier.refuse = Some(1);
        assert!(!world.alloc());
        assert_eq!((world.slabs.bytes(), world.supplier.requests), (0, 2));
        assert!(world.alloc());
    });
}

#[test]
fn a_buffer_that_is_used_up_refuses_and_serves_again_when_objects_come_back() {
    with_world(ObjectLayout::of(500, 0, true).unwrap(), 3, |world| {
        let all = world.alloc_many(1000);
        assert!((45..=48).contains(&all), "{all}");
        assert!(!world.alloc());
        world.free(7, true);
        assert!(world.alloc() && !world.alloc());
    });
}
