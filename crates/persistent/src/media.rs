//! The media of a heap. [`each!`] costs one predictable branch for each request.

use crate::error::Error;
use craton_os::DiskFile;
use craton_os::persistent_file::{Cached, Flushed};
use craton_pheap::{Heap, Tx};
#[cfg(test)]
use craton_sim::SimMedium;

pub enum AnyHeap {
    Flushed(Heap<Flushed>),
    Cached(Heap<Cached>),
    /// The largest, and the one where an indirection costs least.
    Disk(Box<Heap<DiskFile>>),
    #[cfg(test)]
    Sim(Heap<SimMedium>),
}

pub enum AnyTx<'a> {
    Flushed(Tx<'a, Flushed>),
    Cached(Tx<'a, Cached>),
    Disk(Tx<'a, DiskFile>),
    #[cfg(test)]
    Sim(Tx<'a, SimMedium>),
}

macro_rules! each {
    ($kind:ident, $any:expr, $it:ident => $body:expr) => {
        match $any {
            $crate::media::$kind::Flushed($it) => $body,
            $crate::media::$kind::Cached($it) => $body,
            $crate::media::$kind::Disk($it) => $body,
            #[cfg(test)]
            $crate::media::$kind::Sim($it) => $body,
        }
    };
}

pub(crate) use each;

impl AnyHeap {
    pub fn close(self) -> Result<(), Error> {
        match self {
            Self::Disk(heap) => {
                let medium = heap.close();
                medium.sync(|| ())?;
                Ok(medium.close()?)
            }
            other => {
                each!(AnyHeap, other, heap => drop(heap.close()));
                Ok(())
            }
        }
    }

    pub fn begin(&self) -> Result<AnyTx<'_>, craton_pheap::Error> {
        Ok(match self {
            Self::Flushed(heap) => AnyTx::Flushed(heap.begin()?),
            Self::Cached(heap) => AnyTx::Cached(heap.begin()?),
            Self::Disk(heap) => AnyTx::Disk(heap.begin()?),
            #[cfg(test)]
            Self::Sim(heap) => AnyTx::Sim(heap.begin()?),
        })
    }
}
