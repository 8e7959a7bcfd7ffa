//! A crash after every store, flush and fence of every operation. Each image that it can leave is
//! opened; some recoveries crash too, and some heaps go on.

use crate::common::{SLOTS, Sim, Typed, check, config, create, options, seeds, snapshot, step, table};
use craton_base::{Medium, Space};
use craton_pheap::{Error, Heap, Model, Options};
use craton_sim::{Image, Rng};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

type Job = Box<dyn FnOnce() + Send>;

struct Worker(Option<Sender<Job>>, Receiver<()>, Option<std::thread::JoinHandle<()>>);

impl Worker {
    fn new() -> Self {
        let ((jobs, todo), (done, finished)) = (channel::<Job>(), channel());
        let thread = std::thread::spawn(move || {
            for job in todo {
                job();
                done.send(()).unwrap();
            }
        });
        Self(Some(jobs), finished, Some(thread))
    }

    fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (result, got) = channel();
        self.0.as_ref().unwrap().send(Box::new(move || result.send(job()).unwrap())).unwrap();
        self.1.recv().expect("the thread of an operation panicked");
        got.recv().unwrap()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.0 = None;
        if let Some(thread) = self.2.take() {
            let _ = thread.join();
        }
    }
}

type Slots = Vec<(u64, u64)>;

struct Images {
    rng: Rng,
    seen: HashSet<u128>,
    most: usize,
    opened: u64,
}

fn open<const F: bool>(image: &Image) -> Result<(Sim<F>, Heap<Sim<F>>), Error> {
    let medium = Sim::<F>::from_image(image);
    Heap::open_traced(medium.clone(), options(), &Typed).map(|(heap, _)| (medium, heap))
}

impl Images {
    fn verify<const F: bool>(&mut self, image: &Image, before: &Slots, after: &Slots) -> Result<(), String> {
        if !self.seen.insert(image.digest()) {
            return Ok(());
        }
        self.opened += 1;
        let (_, heap) = open::<F>(image).map_err(|e| format!("open: {e}"))?;
        let found = check(&heap)?;
        if found != *before && found != *after {
            return Err(format!("slots {found:x?}\nbefore {before:x?}\nafter {after:x?}"));
        }
        if self.rng.one_in(16) {
            self.crash_again::<F>(image, &found)?;
        }
        if self.rng.one_in(16) {
            for mark in 0..8 {
                match step(&heap, &mut self.rng, mark) {
                    Ok(()) | Err(Error::NoMemory) => check(&heap)?,
                    Err(error) => return Err(format!("afterwards: {error}")),
                };
            }
        }
        Ok(())
    }

    /// The next recovery must yield the same.
    fn crash_again<const F: bool>(&mut self, image: &Image, slots: &Slots) -> Result<(), String> {
        let medium = Sim::<F>::from_image(image);
        medium.record();
        drop(Heap::open_traced(medium.clone(), options(), &Typed));
        for moment in medium.take_moments() {
            for image in moment.new_images(8, &mut self.rng) {
                let (_, heap) = open::<F>(&image).map_err(|e| format!("open again: {e}"))?;
                let found = check(&heap).map_err(|e| format!("recovered again: {e}"))?;
                if found != *slots {
                    return Err(format!("recovered again: {found:x?}\nat first {slots:x?}"));
                }
            }
        }
        Ok(())
    }
}

/// Returns the number of opened images.
fn run<const F: bool>(model: Model, seed: u64, steps: u64, most: usize) -> Result<u64, String> {
    let (medium, heap) = create::<F>(model, 2 << 20);
    run_in(&medium, heap, seed, steps, most)
}

/// [`run`] on this medium's heap, perhaps through another medium.
pub fn run_in<const F: bool, M: Medium + Space + 'static>(
    medium: &Sim<F>,
    heap: Heap<M>,
    seed: u64,
    steps: u64,
    most: usize,
) -> Result<u64, String> {
    let heap = Arc::new(heap);
    table(&heap, SLOTS);
    let workers = [Worker::new(), Worker::new()];
    let mut rng = Rng::new(seed);
    let mut images = Images { rng: Rng::new(seed ^ 0xabcd), seen: HashSet::new(), most, opened: 0 };
    for mark in 0..steps {
        let before = check(&heap)?;
        let (heap_there, at) = (heap.clone(), rng.next_u64());
        medium.record();
        let result = rng.pick(&workers).run(move || step(&heap_there, &mut Rng::new(at), mark + 1));
        let moments = medium.take_moments();
        let after = check(&heap).map_err(|e| format!("step {mark}: {e}"))?;
        match result {
            Ok(()) => {}
            Err(Error::NoMemory) => assert_eq!(snapshot(&heap)?, before),
            Err(error) => return Err(format!("step {mark}: {error}")),
        }
        let mut first = true;
        for moment in moments {
            let these = if std::mem::take(&mut first) {
                moment.images(images.most, &mut rng)
            } else {
                moment.new_images(images.most, &mut rng)
            };
            for image in these {
                let verdict = images.verify::<F>(&image, &before, &after);
                verdict.map_err(|e| format!("seed {seed}, step {mark}, after {:?}: {e}", moment.event()))?;
            }
        }
    }
    Ok(images.opened)
}

#[test]
fn every_crash_leaves_before_or_after() {
    let opened: u64 = seeds(1, 4).map(|seed| run::<true>(Model::Log, seed, 20, 16).unwrap()).sum();
    assert!(opened > 1_000, "{opened} images");
    eprintln!("{opened} images");
}

#[test]
fn every_death_of_a_process_leaves_before_or_after() {
    let opened: u64 = seeds(1, 4).map(|seed| run::<false>(Model::Log, seed, 40, 16).unwrap()).sum();
    assert!(opened > 200, "{opened} images");
    eprintln!("{opened} images");
}

#[test]
fn every_crash_of_a_heap_of_frames_leaves_before_or_after() {
    let opened: u64 = seeds(1, 2).map(|seed| run::<true>(Model::Frames, seed, 8, 6).unwrap()).sum();
    assert!(opened > 80, "{opened} images");
    eprintln!("{opened} images");
    let opened: u64 = seeds(1, 2).map(|seed| run::<false>(Model::Frames, seed, 16, 6).unwrap()).sum();
    assert!(opened > 40, "{opened} images");
    eprintln!("{opened} images");
}

#[test]
fn every_crash_leaves_before_or_after_where_homes_are_written_back_at_once() {
    let medium = Sim::<true>::new(1 << 16, 2 << 20);
    let options = Options { eager: true, ..options() };
    let heap = Heap::create(medium.clone(), config(Model::Log), options).unwrap();
    let opened = run_in(&medium, heap, 11, 20, 8).unwrap();
    assert!(opened > 100, "{opened} images");
}

#[test]
fn every_death_of_a_process_is_collected() {
    let opened: u64 = seeds(1, 4).map(|seed| run::<false>(Model::Gc, seed, 40, 16).unwrap()).sum();
    assert!(opened > 200, "{opened} images");
}

#[test]
#[ignore = "nightly: an hour of crashes"]
fn many_crashes() {
    let both = |model, seed| run::<true>(model, seed, 60, 200).unwrap() + run::<false>(model, seed, 200, 200).unwrap();
    let opened: u64 = (100..400).map(|seed| both(Model::Log, seed) + both(Model::Frames, seed)).sum();
    eprintln!("{opened} images");
}

#[test]
fn a_crash_in_create_leaves_no_heap_or_a_whole_one() {
    [Model::Log, Model::Frames].into_iter().for_each(crash_in_create);
}

fn crash_in_create(model: Model) {
    let medium = Sim::<true>::new(1 << 16, 1 << 20);
    // Over another heap, whose parts must not count.
    drop(Heap::create(medium.clone(), config(model), options()).unwrap());
    medium.record();
    drop(Heap::create(medium.clone(), config(model), options()));
    let mut rng = Rng::new(1);
    let mut whole = 0;
    for moment in medium.take_moments() {
        for image in moment.new_images(16, &mut rng) {
            match open::<true>(&image) {
                Ok((_, heap)) => {
                    heap.check().unwrap();
                    whole += 1;
                }
                Err(Error::NotAHeap { .. } | Error::Truncated { .. } | Error::Damaged { what: "superblock", .. }) => {}
                Err(Error::Version { found: 0, .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
    assert!(whole > 0);
}
