//! The spans that hold a profile's objects, as a profile of spans. A dense span's size is one byte
//! short, which rounds to the same pages ([`span_of`]).

use super::profile::{Profile, Row};
use craton_base::{Bytes, Density, PAGE_SIZE, Pages};
use craton_slab::size_class::{CLASSES, MAX_CLASSED, class_of, geometry};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lives {
    /// A byte's mean life.
    Even,
    /// Its objects die together.
    Object,
    /// Until its last object dies, each independently. Refilled slabs would live even longer.
    LastObject,
}

fn size_for(pages: Pages, density: Density) -> u64 {
    pages.bytes().0 as u64 - u64::from(density == Density::Dense)
}

pub fn span_of(size: u64) -> (Pages, Density) {
    let pages = Bytes(size as usize).pages_up().unwrap_or(Pages(u32::MAX));
    (pages, if size.is_multiple_of(PAGE_SIZE as u64) { Density::Sparse } else { Density::Dense })
}

/// Of `k` exponential lives of mean 1.
fn longest_life(k: u32) -> f64 {
    (1..=k).map(|i| 1.0 / f64::from(i)).sum()
}

pub fn spans(profile: &Profile, lives: Lives) -> Profile {
    let mut classes = vec![(0.0, 0.0); CLASSES + 1];
    let mut rows = Vec::new();
    for row in profile.rows() {
        if row.size <= MAX_CLASSED as u64 {
            let of: &mut (f64, f64) = &mut classes[class_of(row.size as usize)];
            *of = (of.0 + row.rate, of.1 + row.live);
        } else {
            let pages = Bytes(row.size as usize).pages_up().unwrap_or(Pages(u32::MAX));
            rows.push(Row { size: size_for(pages, Density::Sparse), ..*row });
        }
    }
    for (class, (rate, live)) in classes.into_iter().enumerate().filter(|(_, (_, live))| *live > 0.0) {
        let geometry = geometry(class);
        let slabs = live / f64::from(geometry.capacity);
        let longer = match lives {
            Lives::Even | Lives::Object => 1.0,
            Lives::LastObject => longest_life(geometry.capacity.into()),
        };
        let rate = rate / f64::from(geometry.capacity) / longer;
        rows.push(Row { size: size_for(geometry.pages, geometry.density()), rate, live: slabs });
    }
    if lives == Lives::Even {
        let bytes = |of: fn(&Row) -> f64| profile.rows().iter().map(|row| of(row) * row.size as f64).sum::<f64>();
        let life_s = bytes(|row| row.live) / bytes(|row| row.rate);
        rows.iter_mut().for_each(|row| row.rate = row.live / life_s);
    }
    Profile::of_rows(rows)
}

#[cfg(test)]
mod tests;
