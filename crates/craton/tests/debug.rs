//! The debugging kit in a program of which all memory is Craton's, and is freed by its size alone.

#[global_allocator]
static ALLOCATOR: craton::Craton = craton::Craton;

#[test]
fn the_kit_is_not_turned_on_in_a_program_that_frees_by_sizes_alone() {
    drop(vec![1u8; 40]);
    for value in ["all", "audit:64"] {
        assert!(ALLOCATOR.set_option("debug", value).is_err(), "{value}");
    }
    assert_eq!(ALLOCATOR.option("debug", &mut [0; 64]), Some("none"));
    ALLOCATOR.set_option("debug", "none").unwrap();
    drop(vec![1u8; 40]);
}
