use super::*;

#[test]
fn time_passes_and_the_heap_is_looked_after_each_second() {
    let mut world: World = World::new(64 << 20);
    let span = world.alloc(Pages(256 * 20), Density::Sparse).expect("room");
    assert_eq!((world.state().used, world.state().backed), (40 << 20, 40 << 20));
    world.free(span, Density::Sparse);
    world.pass_until(10 * SECOND_NS + 1);
    assert_eq!(world.now_ns, 10 * SECOND_NS + 1);
    let state = world.state();
    assert!(state.used == 0 && state.backed <= state.limit, "{state:?}");
    world.pass_until(SECOND_NS);
    assert_eq!(world.now_ns, 10 * SECOND_NS + 1, "time does not go back");
}

#[test]
fn a_region_that_is_full_is_an_error_that_says_so() {
    let mut world: World = World::new(4 << 20);
    assert!(world.alloc(Pages(512), Density::Sparse).is_ok());
    let why = world.alloc(Pages(1), Density::Sparse).unwrap_err();
    assert!(why.contains("4 MiB in spans"), "{why}");
}
