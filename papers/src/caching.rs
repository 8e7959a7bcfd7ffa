//! The cost of an object: memory alone, and constructed objects, cached and not (Bonwick94 §2,
//! §5.1).
//!
//! **Unsafe.** Uses raw memory.

mod library;
mod source;
pub mod types;

use crate::objects::{Arena, FastFits, LazyBuddy, PowerOfTwo};
use clap::Parser;
use clap::builder::RangedU64ValueParser as Range;
use craton_lab::micro::calls::malloc_from;
use craton_lab::summary::Spread;
use library::Cached;
use serde::{Deserialize, Serialize};
use source::{Malloc, Plain, Slabs, Source, Stored};
use std::time::Instant;
use types::Type;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum From {
    Malloc,
    /// Of `libcraton.so`.
    Cache,
    /// `craton-slab`, in this program.
    Slabs,
    /// 4.4BSD's.
    PowerOfTwo,
    /// SVr4's.
    LazyBuddy,
    /// SunOS 4.1.3's.
    FastFits,
}

impl From {
    pub const ALL: [(&str, Self); 6] = [
        ("malloc", Self::Malloc),
        ("cache", Self::Cache),
        ("slabs", Self::Slabs),
        ("power-of-two", Self::PowerOfTwo),
        ("lazy-buddy", Self::LazyBuddy),
        ("fast-fits", Self::FastFits),
    ];

    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, from)| *from == self).map_or("", |(name, _)| name)
    }
}

#[derive(Clone, Copy, Debug)]
pub enum What {
    /// The first word is written.
    Bytes(usize),
    /// [`From::Malloc`] constructs and destroys it each time.
    Object(&'static Type),
}

/// The cost of allocating and freeing an object: a line of JSON, in nanoseconds.
#[derive(Clone, Copy, Debug, Parser)]
#[command(after_help = after_help())]
pub struct Request {
    /// malloc, cache (of libcraton.so, preloaded), slabs, power-of-two, lazy-buddy or fast-fits
    #[arg(value_parser = from)]
    pub from: From,
    /// A number of bytes, 8 to 1048576, or a type of constructed objects, for malloc and cache
    #[arg(value_parser = what)]
    pub what: What,
    /// Take N, then give them back
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = Range::<usize>::new().range(1..=10_000))]
    pub batch: usize,
    /// Objects of a repetition
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    #[arg(value_parser = Range::<usize>::new().range(1..=1_000_000_000))]
    pub count: usize,
    /// Repetitions that count, after one that does not
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = Range::<usize>::new().range(1..=10_000))]
    pub repetitions: usize,
}

fn after_help() -> String {
    let types: String = types::TYPES.iter().map(|of| format!("  {:<18}{}\n", of.name, of.about)).collect();
    format!("Types:\n{types}\nExample: LD_PRELOAD=libcraton.so craton-objects cache mutex --batch 100")
}

fn from(name: &str) -> Result<From, String> {
    let found = From::ALL.into_iter().find(|(named, _)| *named == name);
    found.map(|(_, from)| from).ok_or_else(|| "serves nothing here; --help lists what does".to_owned())
}

fn what(name: &str) -> Result<What, String> {
    match (types::find(name), name.parse()) {
        (Some(of), _) => Ok(What::Object(of)),
        (None, Ok(bytes)) if (8..=MOST_BYTES).contains(&bytes) => Ok(What::Bytes(bytes)),
        (None, Ok(_)) => Err(format!("give a whole number from 8 to {MOST_BYTES}")),
        (None, Err(_)) => Err("no type and no number of bytes; --help lists the types".to_owned()),
    }
}

const MOST_BYTES: usize = 1 << 20;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    pub ns_median: f64,
    pub ns_min: f64,
    pub malloc_from: String,
}

pub fn measure(request: &Request) -> Result<Measurement, String> {
    let bytes = match request.what {
        What::Bytes(bytes) => bytes,
        What::Object(of) => of.bytes,
    };
    let arena = || Arena::new((2 * request.batch * bytes.next_power_of_two()).div_ceil(craton_base::PAGE_SIZE) + 64);
    let ns = match (request.from, request.what) {
        (From::Malloc, What::Bytes(bytes)) => times(request, &mut Plain(Malloc(bytes))),
        (From::Malloc, What::Object(of)) => times(request, &mut source::Constructed(of)),
        (From::Cache, What::Bytes(bytes)) => times(request, &mut Plain(Cached::of_bytes(bytes)?)),
        (From::Cache, What::Object(of)) => times(request, &mut source::Used(Cached::of_type(of)?)),
        (from, What::Object(of)) => Err(format!("{} has no constructed objects such as {}", from.name(), of.name)),
        (From::Slabs, What::Bytes(bytes)) => times(request, &mut Plain(Slabs::new(arena(), bytes)?)),
        (From::PowerOfTwo, _) => times(request, &mut Plain(Stored(PowerOfTwo::new(arena()), bytes))),
        (From::LazyBuddy, _) => times(request, &mut Plain(Stored(LazyBuddy::new(arena()), bytes))),
        (From::FastFits, _) => times(request, &mut Plain(Stored(FastFits::new(arena()), bytes))),
    }?;
    let spread = Spread::of(ns).ok_or("no repetition was asked for")?;
    Ok(Measurement { ns_median: spread.median, ns_min: spread.min, malloc_from: malloc_from() })
}

fn times(request: &Request, source: &mut impl Source) -> Result<Vec<f64>, String> {
    let mut batch = vec![std::ptr::null_mut::<u8>(); request.batch];
    let turns = (request.count / request.batch).max(1);
    let mut ns = Vec::with_capacity(request.repetitions);
    for repetition in 0..=request.repetitions {
        let start = Instant::now();
        for _ in 0..turns {
            for place in &mut batch {
                *place = source.alloc().ok_or("the allocator refused an object")?;
            }
            for place in batch.iter().rev() {
                // SAFETY: allocated, and freed once.
                unsafe { source.free(*place) };
            }
        }
        if repetition > 0 {
            ns.push(start.elapsed().as_nanos() as f64 / (turns * request.batch) as f64);
        }
    }
    Ok(ns)
}

#[cfg(test)]
mod tests;
