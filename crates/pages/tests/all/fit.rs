use super::World;
use crate::common::Op;
use craton_pages::HugeBacking;
use craton_sim::ThpMode;

#[test]
fn an_aligned_span_is_found_behind_any_number_of_misaligned_gaps() {
    let mut world = World::new(7, ThpMode::Never, HugeBacking::ALWAYS);
    // Only the longest holds 64 pages at a multiple of 64.
    for gap in [64, 65, 66, 67, 68, 69, 127] {
        for pages in [1, gap, 255 - gap] {
            world.step(Op::alloc(pages, 1)).unwrap();
        }
    }
    for middle in (1..21).step_by(3).rev() {
        world.step(Op::Free { nth: middle }).unwrap();
    }
    world.check();
    world.step(Op::alloc(64, 64)).unwrap();
    assert_eq!(world.out.last().map(|span| span.first.0), Some(6 * 256 + 64));
    world.check();
    world.drain();
}
