//! Objects by name: a table of 960 lines.
//!
//! **Invariants.** *N1* A line is a root if its check word is not 0. The check is stored last, and
//! removed first: words of a line become durable in the order of their stores.

use crate::error::Error;
use crate::heap::{Heap, Slot};
use crate::layout::{ROOTS, ROOTS_END, check_of};
use crate::slab::read_line;
use craton_base::{LINE_BYTES, Line, Medium, Space};
use std::sync::PoisonError;

pub const ROOT_NAME_BYTES: usize = 39;

/// A slot with a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Root {
    pub slot: Slot,
    /// The application's, for the type.
    pub tag: u64,
    name: [u8; ROOT_NAME_BYTES + 1],
}

impl Root {
    pub fn name(&self) -> &[u8] {
        &self.name[..usize::from(self.name[ROOT_NAME_BYTES]).min(ROOT_NAME_BYTES)]
    }
}

fn name_words(name: &[u8]) -> Result<[u8; ROOT_NAME_BYTES + 1], Error> {
    if name.is_empty() || name.len() > ROOT_NAME_BYTES {
        return Err(Error::RootName { len: name.len() });
    }
    let mut bytes = [0; ROOT_NAME_BYTES + 1];
    bytes[..name.len()].copy_from_slice(name);
    bytes[ROOT_NAME_BYTES] = name.len() as u8;
    Ok(bytes)
}

impl<M: Medium + Space> Heap<M> {
    pub fn root(&self, name: &[u8]) -> Result<Root, Error> {
        let bytes = name_words(name)?;
        self.roots()?.into_iter().find(|root| root.name == bytes).ok_or(Error::NoRoot)
    }

    pub fn roots(&self) -> Result<Vec<Root>, Error> {
        let lines = (ROOTS..ROOTS_END).step_by(LINE_BYTES as usize);
        lines.filter_map(|at| self.read_root(at).transpose()).collect()
    }

    /// With an empty slot, and a tag for the object's type. Durable on return.
    pub fn add_root(&self, name: &[u8], tag: u64) -> Result<Slot, Error> {
        let bytes = name_words(name)?;
        let _lock = self.roots.lock().unwrap_or_else(PoisonError::into_inner);
        let mut vacant = None;
        for at in (ROOTS..ROOTS_END).step_by(LINE_BYTES as usize) {
            match self.read_root(at)? {
                Some(root) if root.name == bytes => return Err(Error::RootExists { slot: at }),
                Some(_) => {}
                None => vacant = vacant.or(Some(at)),
            }
        }
        let at = vacant.ok_or(Error::RootsFull)?;
        let mut line: Line = [0, tag, 0, 0, 0, 0, 0, 0];
        for (word, bytes) in line[2..7].iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().unwrap_or_default());
        }
        line[7] = check_of(&line, self.seed ^ at);
        for (i, word) in line.iter().enumerate() {
            self.medium.store(at + 8 * i as u64, *word);
        }
        self.medium.flush(at);
        self.medium.fence();
        Ok(Slot(at))
    }

    /// The slot must be empty. Durable on return.
    pub fn remove_root(&self, name: &[u8]) -> Result<(), Error> {
        let _lock = self.roots.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = self.root(name)?.slot;
        if self.load(slot.0) != 0 {
            return Err(Error::RootInUse { slot: slot.0 });
        }
        // Lines that name the slot must be void before another root has it.
        self.settle();
        self.medium.store(slot.0 + 56, 0);
        self.medium.flush(slot.0);
        self.medium.fence();
        Ok(())
    }

    fn read_root(&self, at: u64) -> Result<Option<Root>, Error> {
        let line = read_line(&self.medium, at);
        if line[7] == 0 {
            return Ok(None);
        }
        let mut body = line;
        body[0] = 0;
        if line[7] != check_of(&body, self.seed ^ at) {
            return Err(Error::Damaged { what: "root", at });
        }
        let mut name = [0; ROOT_NAME_BYTES + 1];
        for (bytes, word) in name.chunks_exact_mut(8).zip(&line[2..7]) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        Ok(Some(Root { slot: Slot(at), tag: line[1], name }))
    }
}
