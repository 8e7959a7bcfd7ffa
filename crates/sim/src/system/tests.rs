use super::*;
use crate::fault::FaultRule;

#[test]
fn a_mapping_is_aligned_zeroed_and_counted_until_its_last_part_goes() {
    let system = SimSystem::default();
    let at = system.map(3 * PAGE, 1 << 16).unwrap();
    assert_eq!((at % (1 << 16), system.mapped()), (0, 3 * PAGE));
    // SAFETY: the mapping is ours and so long.
    unsafe {
        assert!((0..3 * PAGE).all(|i| (at as *const u8).add(i).read() == 0));
        (at as *mut u8).add(3 * PAGE - 1).write(7);
    }
    system.unmap(at, PAGE);
    assert_eq!(system.mapped(), 2 * PAGE);
    system.unmap(at + PAGE, 2 * PAGE);
    assert_eq!(system.mapped(), 0);
}

#[test]
fn contents_survive_a_move_and_the_source_of_moved_memory_reads_as_zeros() {
    let system = SimSystem::default();
    let at = system.map(PAGE, PAGE).unwrap();
    // SAFETY: ours.
    unsafe { (at as *mut u8).write(9) };
    assert_eq!(system.grow(at, PAGE, 2 * PAGE, false), None, "the neighbour is taken");
    let at = system.grow(at, PAGE, 2 * PAGE, true).unwrap();
    let other = system.map(4 * PAGE, PAGE).unwrap();
    assert!(system.move_memory(at, PAGE, other));
    // SAFETY: both are ours.
    unsafe { assert_eq!(((at as *const u8).read(), (other as *const u8).read()), (0, 9)) };
    assert!(system.replace(other, 4 * PAGE, system.map(4 * PAGE, PAGE).unwrap(), 4 * PAGE));
    assert_eq!(system.mapped(), 6 * PAGE);
}

#[test]
fn what_the_plan_refuses_changes_nothing() {
    let faults = FaultPlan::default();
    let system = SimSystem::new(faults.clone());
    let at = system.map(PAGE, PAGE).unwrap();
    faults.set(FaultRule::From(1));
    assert_eq!((system.map(PAGE, PAGE), system.grow(at, PAGE, 2 * PAGE, true)), (None, None));
    assert!(!system.move_memory(at, PAGE, at) && !system.replace(at, PAGE, at, PAGE));
    assert_eq!(system.mapped(), PAGE);
}

#[test]
fn the_test_chooses_the_processor() {
    let system = SimSystem::default();
    system.set_cpu(3);
    assert_eq!((system.clone().cpu(), system.page_size()), (3, PAGE));
}
