//! The live buffers of `debug=audit`, summed by the stack of their allocation: an exact heap
//! profile.
//!
//! **State.** A mapping of sums by the stack's number, which zeros begin; only the used part has
//! memory.
//!
//! **Threads.** The sums are those of each part of the table at one moment. No lock is held
//! afterwards.
//!
//! **Unsafe.** Reads and writes the mapping.

use crate::setting::AUDIT;
use crate::table::State;
use crate::{Kit, Process};
use core::slice;
use craton_os::{mapping, process};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sum {
    pub bytes: u64,
    pub objects: u64,
}

pub struct Audited<'k, P: Process> {
    kit: &'k Kit<P>,
    sums: &'static mut [Sum],
}

impl<P: Process> Kit<P> {
    /// Whether `debug=audit` was ever on.
    pub fn is_audited(&self) -> bool {
        self.setting.log().is_some()
    }

    /// `None`: no audit, or no memory for the sums.
    pub fn audited(&self) -> Option<Audited<'_, P>> {
        let len = self.is_audited().then(|| self.stacks.numbers())?;
        let at = mapping::map(bytes_of(len), 1)? as *mut Sum;
        // SAFETY: fresh zeros of this size, which stay until the drop.
        let sums = unsafe { slice::from_raw_parts_mut(at, len) };
        self.table.each(|buffer| {
            if buffer.state == State::Live
                && buffer.checks & AUDIT != 0
                && let Some(sum) = sums.get_mut(buffer.taken.stack as usize)
            {
                sum.bytes += buffer.size as u64;
                sum.objects += 1;
            }
        });
        Some(Audited { kit: self, sums })
    }
}

impl<P: Process> Audited<'_, P> {
    /// With each stack's return addresses, innermost first; none for buffers without a stack.
    ///
    /// # Errors
    /// The first of `act`.
    pub fn each<E>(&self, mut act: impl FnMut(&[usize], Sum) -> Result<(), E>) -> Result<(), E> {
        let mut used = self.sums.iter().enumerate().filter(|(_, sum)| sum.objects > 0);
        used.try_for_each(|(number, sum)| act(self.kit.stacks.frames(number as u32), *sum))
    }
}

impl<P: Process> Drop for Audited<'_, P> {
    fn drop(&mut self) {
        mapping::unmap(self.sums.as_ptr() as usize, bytes_of(self.sums.len()));
    }
}

fn bytes_of(len: usize) -> usize {
    (len * size_of::<Sum>()).next_multiple_of(process::page_size())
}
