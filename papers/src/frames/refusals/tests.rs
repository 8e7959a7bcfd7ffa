use super::*;
use crate::frames::Design;

#[test]
fn designs_refuse_what_is_not_there_and_nothing_else() {
    for design in [Design::Craton, Design::Strict, Design::Paper].into_iter().chain(Design::authors()) {
        for case in Case::ALL {
            let world = World { frames: 2 * TREE, ..case.world(1) };
            let world = if case == Case::Shared { case.world(1) } else { world };
            let job = Refusals { case, frames: world.frames, calls: 3 };
            let done = design.with(&world, job).and_then(|done| done);
            assert!(done.as_ref().is_ok_and(|ns| *ns > 0.0), "{}, {}: {done:?}", design.name(), case.name());
        }
    }
}
