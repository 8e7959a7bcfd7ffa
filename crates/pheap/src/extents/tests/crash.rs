//! A crash after any event leaves what was committed.

use super::world::{Line, World, config, redo};
use crate::extents::{ExtentConfig, ExtentKind, Extents, Home};
use craton_sim::{Image, Moment, Rng, SimPersistent};
use std::collections::BTreeMap;

fn at_step(lines: &[(Line, u64)], step: u64) -> (BTreeMap<u64, u32>, Vec<Home>) {
    let (mut live, mut redone) = (BTreeMap::new(), Vec::new());
    for (line, settled_at) in lines.iter().filter(|(line, _)| line.step <= step) {
        match line.what {
            Some((true, page, pages)) => drop(live.insert(page, pages)),
            Some((false, page, _)) => drop(live.remove(&page)),
            None => {}
        }
        if *settled_at > step {
            redone.push(line.home);
        }
    }
    (live, redone)
}

fn check_image<const F: bool>(image: &Image, config: ExtentConfig, live: &BTreeMap<u64, u32>, redone: &[Home]) {
    let medium: SimPersistent<F> = SimPersistent::from_image(image);
    // Twice, as if recovery had crashed.
    for _ in 0..2 {
        redo(&medium, redone.iter().copied());
        let extents = Extents::rebuild(&medium, config).unwrap();
        let found: BTreeMap<u64, u32> = extents.list().iter().map(|there| (there.page, there.pages)).collect();
        assert_eq!(&found, live);
        extents.check().unwrap();
    }
}

struct Run {
    seed: u64,
    steps: u64,
    most_live: usize,
    images: usize,
    stripes: u32,
    usage_bytes: u64,
}

/// Also counts the images.
fn run<const F: bool>(run: &Run) -> (usize, World<F>) {
    let config = config(run.stripes, run.usage_bytes);
    let mut rng = Rng::new(run.seed);
    let mut world: World<F> = World::new(24 << 20, config);
    let mut checked = 0;
    // With the step that settled it.
    let mut lines: Vec<(Line, u64)> = Vec::new();
    for _ in 0..run.steps {
        world.medium.record();
        let before = world.medium.steps();
        let known = world.settled.len();
        match rng.below(100) {
            0..12 if world.live.len() < run.most_live => {
                let pages = [1, 4, 16, 16, 16, 20, 33][rng.below(7) as usize];
                let kind = if pages == 16 { ExtentKind::Slab } else { ExtentKind::Object };
                let _ = world.plan_alloc(pages, kind);
            }
            0..22 => {
                let is_idle = |page: &u64| world.under.iter().all(|under| under.plan.page != *page);
                let can: Vec<u64> = world.live.keys().copied().filter(is_idle).collect();
                if !can.is_empty() {
                    world.plan_free(can[rng.below(can.len() as u64) as usize]).unwrap();
                }
            }
            22..24 if !world.under.is_empty() => world.cancel(rng.below(world.under.len() as u64) as usize),
            24..26 => world.settle(),
            26..28 => world.tick(rng.below(4000)),
            _ if !world.under.is_empty() => world.advance(rng.below(world.under.len() as u64) as usize),
            _ => {}
        }
        for line in &world.lines[lines.len()..] {
            lines.push((*line, u64::MAX));
        }
        for (epoch, step) in &world.settled[known..] {
            lines
                .iter_mut()
                .filter(|(line, at)| line.epoch <= *epoch && *at == u64::MAX)
                .for_each(|(_, at)| *at = *step);
        }
        let moments: Vec<Moment> = world.medium.take_moments();
        // The first moment belongs to the step before.
        for (nth, moment) in moments.into_iter().enumerate().skip(1) {
            let (live, redone) = at_step(&lines, before + nth as u64);
            for image in moment.new_images(run.images, &mut rng) {
                check_image::<F>(&image, config, &live, &redone);
                checked += 1;
            }
        }
    }
    (checked, world)
}

#[test]
fn a_crash_at_any_event_keeps_what_was_committed() {
    let mut fast_freed = 0;
    for seed in 0..4 {
        let stripes = [6, 1, 16, 4][seed as usize % 4];
        let (checked, mut world) =
            run::<true>(&Run { seed, steps: 8000, most_live: 100, images: 4, stripes, usage_bytes: 2048 });
        let stats = world.extents.stats().log;
        assert!(checked > 3000 && stats.slow_runs > 0, "{checked} images, {stats:?}");
        fast_freed += stats.fast_freed;
        world.drain();
        world.check();
    }
    assert!(fast_freed > 0);
}

#[test]
fn a_dead_process_keeps_what_was_committed() {
    let (checked, _) =
        run::<false>(&Run { seed: 9, steps: 6000, most_live: 100, images: 12, stripes: 1, usage_bytes: 2048 });
    assert!(checked > 1000);
}

/// A chunk, one in use behind it, and one whose tombstones only the first needs.
#[test]
fn b3_chunks_that_wait_for_another_leave_after_it() {
    let config = config(6, 1 << 30);
    let mut world: World<true> = World::new(24 << 20, config);
    let alloc = |world: &mut World<true>| world.alloc(1, ExtentKind::Object).unwrap();
    let first: Vec<u64> = (0..124).map(|_| alloc(&mut world)).collect();
    for page in &first[..62] {
        alloc(&mut world);
        world.free(*page).unwrap();
    }
    for page in &first[62..] {
        world.free(*page).unwrap();
    }
    for _ in 0..31 {
        let page = alloc(&mut world);
        world.free(page).unwrap();
    }
    assert_eq!(world.extents.stats().log.chunks, 3);
    let redone: Vec<Home> = world.lines.iter().filter(|line| line.what.is_some()).map(|line| line.home).collect();
    world.medium.record();
    world.plan_alloc(1, ExtentKind::Object).unwrap();
    let moments = world.medium.take_moments();
    assert_eq!(world.extents.stats().log.fast_freed, 2);
    for moment in moments {
        for image in moment.new_images(64, &mut Rng::new(1)) {
            check_image::<true>(&image, config, &world.live, &redone);
        }
    }
}
