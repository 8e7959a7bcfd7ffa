//! Arrays for a zone's metadata, each with a line more, to detect writes behind its end.

use craton_base::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};
use craton_frames::{Local, Metadata, Sizes};

pub const LINE: usize = 64;

pub struct Array<T> {
    all: Vec<T>,
    from: usize,
    needed: usize,
}

impl<T> Array<T> {
    fn new(needed: usize, value: impl Fn() -> T) -> Self {
        let line = LINE / size_of::<T>();
        let all: Vec<T> = (0..needed + 2 * line).map(|_| value()).collect();
        let from = (LINE - all.as_ptr() as usize % LINE) % LINE / size_of::<T>();
        Self { all, from, needed }
    }

    pub fn needed(&self) -> &[T] {
        &self.all[self.from..self.from + self.needed]
    }

    pub fn behind(&self) -> &[T] {
        &self.all[self.from + self.needed..][..LINE / size_of::<T>()]
    }
}

pub struct Arrays {
    pub rows: Array<AtomicU64>,
    pub children: Array<AtomicU32>,
    pub trees: Array<AtomicU16>,
    pub index: Array<AtomicU64>,
    pub locals: Vec<Local>,
}

impl Arrays {
    /// The CPUs' words are 0.
    pub fn new(sizes: &Sizes, fill: u8) -> Self {
        let word = || AtomicU64::new(u64::from_ne_bytes([fill; 8]));
        Self {
            rows: Array::new(sizes.rows, word),
            children: Array::new(sizes.children, || AtomicU32::new(u32::from_ne_bytes([fill; 4]))),
            trees: Array::new(sizes.trees, || AtomicU16::new(u16::from_ne_bytes([fill; 2]))),
            index: Array::new(sizes.index, word),
            locals: (0..sizes.locals).map(|_| Local::default()).collect(),
        }
    }

    pub fn metadata(&self) -> Metadata<'_> {
        Metadata {
            rows: self.rows.needed(),
            children: self.children.needed(),
            trees: self.trees.needed(),
            index: self.index.needed(),
            locals: &self.locals,
        }
    }
}

pub trait Value {
    fn value(&self) -> u64;
}

impl Value for AtomicU64 {
    fn value(&self) -> u64 {
        self.load(Relaxed)
    }
}

impl Value for AtomicU32 {
    fn value(&self) -> u64 {
        self.load(Relaxed).into()
    }
}

impl Value for AtomicU16 {
    fn value(&self) -> u64 {
        self.load(Relaxed).into()
    }
}

#[cfg(test)]
mod tests;
