use super::*;

pub fn random(space: &Space, cubes: u32, seed: u64) -> Cover {
    function(space, cubes, &mut Rng::new(seed, 1))
}

/// As a cube.
pub fn points(space: &Space) -> Vec<Cube> {
    let inputs = |bits: u32| {
        let value = move |input: usize| if bits >> input & 1 == 1 { ONE } else { ZERO };
        (0..space.inputs).fold(space.full.clone(), |cube, input| cube.with_input(input, value(input)))
    };
    let of_output = |output: u32| (0..1u32 << space.inputs).map(move |bits| inputs(bits).with_outputs(1u32 << output));
    (0..space.outputs).flat_map(of_output).collect()
}

pub fn has(cover: &[Cube], point: &Cube) -> bool {
    cover.iter().any(|cube| cube.covers(point))
}

#[test]
fn the_result_is_the_same_function_with_fewer_cubes() {
    let mut saved = 0;
    for seed in 0..20 {
        let space = Space::new(6, 3);
        let cover = random(&space, 16, seed);
        let least = minimize(&space, cover.clone());
        for point in points(&space) {
            assert_eq!(has(&cover, &point), has(&least, &point), "seed {seed}, {point:?}");
        }
        assert!(least.len() <= cover.len());
        saved += cover.len() - least.len();
    }
    assert!(saved > 20, "{saved} cubes of 320");
}

#[test]
fn no_cube_of_the_result_can_go() {
    let space = Space::new(6, 2);
    for seed in 0..10 {
        let least = minimize(&space, random(&space, 12, seed));
        for i in 0..least.len() {
            let mut others = least.clone();
            let gone = others.swap_remove(i);
            assert!(points(&space).iter().any(|point| gone.covers(point) && !has(&others, point)), "seed {seed}");
        }
    }
}
