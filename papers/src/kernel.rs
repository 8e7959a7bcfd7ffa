//! A kernel's objects over four steps of load (Bonwick94 §5.2), to compare allocators of kernel
//! memory.
//!
//! A [`Trace`] depends only on a seed. Sizes are SunOS 5's, and a distribution of drivers'.
//!
//! **Unsafe.** Returns raw memory to heaps.

mod kinds;
mod steps;

use crate::objects::{Store, Unasked};

pub use kinds::{Kind, kinds};
pub use steps::{Load, Trace};

pub const STEPS: [&str; 4] = ["boot", "spike", "find", "kenbus"];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    Get {
        /// In [`kinds`].
        kind: u16,
        place: u32,
    },
    Put {
        place: u32,
    },
    Second,
    Step,
}

pub trait Heap {
    fn get(&mut self, kind: usize, bytes: usize) -> Option<*mut u8>;

    /// # Safety
    /// It came from [`Heap::get`] for this kind, and is given up.
    unsafe fn put(&mut self, kind: usize, object: *mut u8, bytes: usize);

    fn second(&mut self) {}

    fn consumed(&self) -> usize;

    /// Beyond `requested` live bytes.
    fn unasked(&self, _requested: usize) -> Option<Unasked> {
        None
    }

    fn check(&self) -> Result<(), String>;
}

impl<S: Store> Heap for S {
    #[inline]
    fn get(&mut self, _: usize, bytes: usize) -> Option<*mut u8> {
        Store::get(self, bytes)
    }

    #[inline]
    unsafe fn put(&mut self, _: usize, object: *mut u8, bytes: usize) {
        // SAFETY: by the contract.
        unsafe { Store::put(self, object, bytes) }
    }

    fn consumed(&self) -> usize {
        Store::consumed(self)
    }

    fn check(&self) -> Result<(), String> {
        Store::check(self)
    }
}

#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Held {
    /// Live, as asked for.
    pub requested: usize,
    pub consumed: usize,
    pub most: usize,
    pub unasked: Option<Unasked>,
}

impl Held {
    pub fn fragmentation(self) -> f64 {
        if self.consumed == 0 { 0.0 } else { 1.0 - self.requested as f64 / self.consumed as f64 }
    }
}

/// After each step. Error: the refused object.
pub fn play(trace: &Trace, kinds: &[Kind], heap: &mut impl Heap) -> Result<Vec<Held>, String> {
    let mut places = vec![(std::ptr::null_mut::<u8>(), 0u16); trace.places];
    let (mut steps, mut now) = (Vec::new(), Held::default());
    for op in &trace.ops {
        match *op {
            Op::Get { kind, place } => {
                let of = &kinds[usize::from(kind)];
                let object =
                    heap.get(kind.into(), of.bytes).ok_or_else(|| format!("an object {} was refused", of.name))?;
                places[place as usize] = (object, kind);
                now.requested += of.bytes;
            }
            Op::Put { place } => {
                let (object, kind) = places[place as usize];
                let bytes = kinds[usize::from(kind)].bytes;
                now.requested -= bytes;
                // SAFETY: the trace frees each object once.
                unsafe { heap.put(kind.into(), object, bytes) };
            }
            Op::Second => {
                now.most = now.most.max(heap.consumed());
                heap.second();
            }
            Op::Step => {
                now.consumed = heap.consumed();
                now.most = now.most.max(now.consumed);
                now.unasked = heap.unasked(now.requested);
                steps.push(now);
            }
        }
    }
    Ok(steps)
}

#[cfg(test)]
mod tests;
