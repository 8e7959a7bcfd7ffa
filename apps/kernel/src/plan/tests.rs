use super::{GIB, LEAST_FRAMES, Offsets, Plan, Refused};
use crate::memory::{FRAME, Given, Map};
use craton_frames::Sizes;

const MIB: u64 = 1 << 20;

fn plan(ranges: &[(u64, u64)]) -> Result<Plan, Refused> {
    let given = ranges.iter().map(|(begin, bytes)| Given { begin: *begin, bytes: *bytes, is_usable: true });
    Plan::new(&Map::new(given, &[]).unwrap(), 4)
}

#[test]
fn the_metadata_lies_in_the_largest_range_and_is_not_free() {
    let plan = plan(&[(MIB, 15 * MIB), (32 * MIB, 96 * MIB), (GIB, 8 * MIB)]).unwrap();
    assert_eq!((plan.base, plan.frames), (0, ((GIB + 8 * MIB) / FRAME) as usize));
    assert_eq!(plan.metadata.begin, 32 * MIB);
    let usable = (15 + 96 + 8) * MIB;
    assert_eq!(plan.free.frames() as u64 * FRAME + plan.metadata.bytes(), usable);
    // 1/8 byte for a frame and some more: less than a thousandth.
    assert!(plan.metadata.bytes() < plan.frames as u64 * FRAME / 1000, "{:?}", plan.metadata);
}

#[test]
fn memory_above_4_gib_alone_needs_no_metadata_for_what_lies_below() {
    let plan = plan(&[(5 * GIB + 3 * MIB, 512 * MIB)]).unwrap();
    assert_eq!(plan.base, 5 * GIB);
    assert!(plan.metadata.begin >= 5 * GIB && plan.metadata.bytes() < MIB);
    assert_eq!(plan.address_of(plan.frame_of(5 * GIB + 8 * MIB)), 5 * GIB + 8 * MIB);
}

#[test]
fn too_little_memory_is_refused() {
    assert_eq!(plan(&[]), Err(Refused::TooLittle { frames: 0 }));
    let least = LEAST_FRAMES as u64 * FRAME;
    assert_eq!(plan(&[(MIB, least - FRAME)]), Err(Refused::TooLittle { frames: LEAST_FRAMES - 1 }));
    assert!(plan(&[(MIB, least)]).is_ok());
    // No range holds the bits of all.
    let apart: Vec<_> = (0..32).map(|i| (i * 64 * GIB, least / 32)).collect();
    assert!(matches!(plan(&apart), Err(Refused::NoRoom { .. })));
}

#[test]
fn arrays_begin_with_a_cache_line_and_do_not_overlap() {
    let sizes = Sizes { rows: 3, children: 5, trees: 1, index: 7, locals: 2 };
    let at = Offsets::of(&sizes);
    for offset in [at.rows, at.children, at.trees, at.index, at.locals] {
        assert!(offset.is_multiple_of(64), "{at:?}");
    }
    assert!(
        at.children >= 24 && at.trees >= at.children + 20 && at.index >= at.trees + 2 && at.locals >= at.index + 56
    );
}
