use craton_base::atomic::{AtomicU16, AtomicU32, AtomicU64};
use craton_frames::{Config, Error, Geometry, Init, Local, Metadata, Sizes, Zone};
use std::ops::Deref;

pub struct Arrays {
    pub rows: Array<AtomicU64>,
    pub children: Array<AtomicU32>,
    pub trees: Array<AtomicU16>,
    pub index: Array<AtomicU64>,
    locals: Array<Local>,
}

/// Begins with a cache line, as far as the elements' size allows.
pub struct Array<T> {
    all: Vec<T>,
    from: usize,
    len: usize,
}

pub fn array<T: Default>(len: usize) -> Array<T> {
    let line = 64usize.div_ceil(size_of::<T>());
    let all: Vec<T> = (0..len + line).map(|_| T::default()).collect();
    let from = all.iter().take(line).position(|element| (std::ptr::from_ref(element) as usize).is_multiple_of(64));
    Array { from: from.unwrap_or(0), all, len }
}

impl<T> Deref for Array<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.all[self.from..self.from + self.len]
    }
}

impl Arrays {
    pub fn new(sizes: Sizes) -> Self {
        Self {
            rows: array(sizes.rows),
            children: array(sizes.children),
            trees: array(sizes.trees),
            index: array(sizes.index),
            locals: array(sizes.locals),
        }
    }

    pub fn metadata(&self) -> Metadata<'_> {
        let Self { rows, children, trees, index, locals } = self;
        Metadata { rows, children, trees, index, locals }
    }

    pub fn zone<G: Geometry>(&self, frames: usize, init: Init, config: Config) -> Result<Zone<'_, G>, Error> {
        Zone::new(frames, self.metadata(), init, config)
    }
}
