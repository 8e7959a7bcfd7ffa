//! The words of a lane's header, each with a check: recovery trusts them. `layout.rs` has the
//! offsets. A word of 0 was never set, or was reset.
//! ```text
//! pending      the number of lines, 1 to 63, in each of the 8 bytes, xor a key of the lane
//! used         generation 40 | check 24
//! transaction  number, and in a word before it in store order its check
//! undo         slot, and a word that the same batch sets: the check of its value
//! ```

use super::seed_of;
use crate::error::Error;
use crate::layout::{LANE_PENDING, LANE_TX, LANE_TX_CHECK, LANE_UNDO, LANE_UNDO_CHECK, LANE_USED, check_of};
use crate::line::PARTS_MOST;
use craton_base::Medium;
use craton_base::atomic::Ordering;

const CHECK_BITS: u32 = 24;
const CHECK: u64 = (1 << CHECK_BITS) - 1;
const EACH_BYTE: u64 = 0x0101_0101_0101_0101;

/// Of the value in the word at `at`; not 0.
pub fn check_word(seed: u64, at: u64, value: u64) -> u64 {
    check_of(&[value, 0, 0, 0, 0, 0, 0, 0], seed_of(seed, at))
}

pub fn pending_key(seed: u64, header: u64) -> u64 {
    check_word(seed, header + LANE_PENDING, 0)
}

/// `lines`: 1 to 63.
#[inline(always)]
pub const fn encode_pending(key: u64, lines: u64) -> u64 {
    key ^ (lines * EACH_BYTE)
}

pub fn encode_used(seed: u64, header: u64, generation: u64) -> u64 {
    generation << CHECK_BITS | check_word(seed, header + LANE_USED, generation) & CHECK
}

pub struct Header<'a, M: Medium> {
    pub medium: &'a M,
    pub seed: u64,
    pub at: u64,
}

impl<M: Medium> Header<'_, M> {
    fn load(&self, word: u64) -> u64 {
        // ORDERING: pairs with the store that commits lines, behind those of the lines.
        self.medium.word(self.at + word).load(Ordering::Acquire)
    }

    fn damaged<T>(&self, what: &'static str, word: u64) -> Result<T, Error> {
        Err(Error::Damaged { what, at: self.at + word })
    }

    pub fn check(&self) -> Result<(), Error> {
        self.pending().and(self.used()).and(self.transaction()).and(self.undo()).map(drop)
    }

    /// Of an operation under way on a medium without write-back.
    pub fn pending(&self) -> Result<u64, Error> {
        let word = self.load(LANE_PENDING);
        let key = pending_key(self.seed, self.at);
        match (word ^ key) & 0xff {
            _ if word == 0 => Ok(0),
            lines @ 1.. if lines <= PARTS_MOST as u64 && word == encode_pending(key, lines) => Ok(lines),
            _ => self.damaged("pending lines of a lane", LANE_PENDING),
        }
    }

    /// The last generation that used the ring; 0: none.
    pub fn used(&self) -> Result<u64, Error> {
        let word = self.load(LANE_USED);
        let generation = word >> CHECK_BITS;
        match word {
            0 => Ok(0),
            _ if generation != 0 && word == encode_used(self.seed, self.at, generation) => Ok(generation),
            _ => self.damaged("generation of a lane", LANE_USED),
        }
    }

    /// The transaction under way, or 0. Call after redo.
    pub fn transaction(&self) -> Result<u64, Error> {
        let number = self.load(LANE_TX);
        match number {
            0 => Ok(0),
            _ if self.load(LANE_TX_CHECK) == check_word(self.seed, self.at + LANE_TX, number) => Ok(number),
            _ => self.damaged("transaction of a lane", LANE_TX),
        }
    }

    /// The undo buffer, or 0. Call after redo.
    pub fn undo(&self) -> Result<u64, Error> {
        let buffer = self.load(LANE_UNDO);
        let check = match buffer {
            0 => 0,
            _ => check_word(self.seed, self.at + LANE_UNDO, buffer),
        };
        match self.load(LANE_UNDO_CHECK) == check {
            true => Ok(buffer),
            false => self.damaged("undo buffer of a lane", LANE_UNDO),
        }
    }
}

#[cfg(test)]
mod tests;
