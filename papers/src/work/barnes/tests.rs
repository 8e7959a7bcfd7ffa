use super::*;

fn leaves(part: &Part) -> usize {
    match part {
        Part::Empty => 0,
        Part::Leaf(_) => 1,
        Part::Cell(cell) => cell.parts.iter().map(leaves).sum(),
    }
}

#[test]
fn the_tree_holds_every_body_and_all_of_the_mass() {
    let bodies = bodies(&mut Rng::new(1, 1), 1000);
    let (mut root, _) = tree(&bodies);
    assert_eq!(leaves(&root), 1000);
    assert!((root.weigh().0 - 1.0).abs() < 1e-9);
}

#[test]
fn bodies_in_one_place_share_a_leaf() {
    let bodies = [Body { at: [0.5; 3], speed: [0.0; 3], mass: 0.5 }; 2];
    let (mut root, _) = tree(&bodies);
    assert_eq!((leaves(&root), root.weigh().0), (1, 1.0));
}

#[test]
fn the_pull_of_the_cells_is_near_that_of_the_bodies() {
    let bodies = bodies(&mut Rng::new(1, 1), 500);
    let (root, side) = tree(&bodies);
    for at in [[3.0, 0.0, 0.0], [0.0, -2.0, 1.0]] {
        let (mut fast, mut exact) = ([0.0; 3], [0.0; 3]);
        root.pull(at, side, &mut fast);
        bodies.iter().for_each(|body| {
            Part::Leaf(Box::new(Leaf { at: body.at, mass: body.mass })).pull(at, 0.0, &mut exact);
        });
        for axis in 0..3 {
            assert!((fast[axis] - exact[axis]).abs() < 0.01, "{fast:?} for {exact:?}");
        }
    }
}

#[test]
fn two_bodies_at_rest_approach_each_other() {
    let body = |x| Body { at: [x, 0.0, 0.0], speed: [0.0; 3], mass: 0.5 };
    let mut bodies = [body(-0.5), body(0.5)];
    (0..10).for_each(|_| step(&mut bodies));
    assert!(bodies[0].at[0] > -0.5 && bodies[1].at[0] < 0.5);
    assert!((bodies[0].at[0] + bodies[1].at[0]).abs() < 1e-12);
}
