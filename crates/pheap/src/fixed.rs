//! Publishing an object with contents that do not change before it is freed, and a word beside its
//! slot: one redo line, one fence.
//!
//! **Invariants.** *NX1* A line of [`Kind::Publish`] counts if its object has the contents of the
//! line's check, or if a later line frees the object: that one was committed behind this one's
//! fence.
//!
//! **Failure.** The line has no room for old values, so recovery cannot tell a later store of the
//! application from an older one (NR3). Slot and word are changed by the heap alone.
//!
//! **GC.** No redo line: a fence for the contents, one for the slot and the word behind it, if they
//! share a line. A crash may then leave the slot without the word.

use crate::batch::{Part, Reserved, What};
use crate::class::SIZES;
use crate::error::Error;
use crate::heap::{Heap, Slot};
use crate::line::{Contents, Fixed};
use craton_base::{LINE_BYTES, LINE_WORDS, Line, Medium, Space};

impl<M: Medium + Space> Heap<M> {
    /// Writes the object's contents, past the cache where that is faster: durable with the next
    /// fence. More words than the object has are left out.
    #[inline]
    pub fn fill(&self, reserved: &mut Reserved, words: impl IntoIterator<Item = u64>) {
        let mut contents = Contents::new(self.seed ^ reserved.at().0);
        let room = reserved.size().div_ceil(8) as usize;
        let (mut line, mut len, mut at): (Line, usize, u64) = ([0; LINE_WORDS], 0, reserved.at().0);
        for word in words.into_iter().take(room) {
            if M::FLUSHES {
                contents.add(word);
            }
            line[len] = word;
            len += 1;
            if (at + 8 * len as u64).is_multiple_of(LINE_BYTES) {
                self.fill_line(at, &line, len);
                at += 8 * len as u64;
                len = 0;
            }
        }
        if len > 0 {
            self.fill_line(at, &line, len);
        }
        reserved.contents = match reserved.what {
            What::Small(..) if M::FLUSHES => Some(contents.end()),
            _ => None,
        };
    }

    #[inline]
    fn fill_line(&self, at: u64, line: &Line, len: usize) {
        if len == LINE_WORDS {
            self.medium.store_line(at, line);
            return;
        }
        line[..len].iter().enumerate().for_each(|(i, word)| self.medium.store(at + 8 * i as u64, *word));
        self.medium.flush(at);
    }

    /// Stores the object's offset in `slot`, and `value` in `word`. [`fill`](Self::fill) has
    /// written the object, and nothing writes to it again. Slot and word are changed by the heap
    /// alone. After a crash either both are stored or none; in a gc heap the slot alone may be, if
    /// they share a line. An error returns the object to the heap.
    pub fn publish_fixed(&self, slot: Slot, reserved: Reserved, word: Slot, value: u64) -> Result<(), Error> {
        if let Err(error) = self.check_two(slot, word) {
            self.cancel(reserved);
            return Err(error);
        }
        let contents = if M::FLUSHES { reserved.contents } else { Some((0, 0)) };
        let (number, object, (words, check)) = match (&reserved.what, contents) {
            (What::Small(number, object), Some(contents)) if self.sup.model.is_logged() && !object.is_guest() => {
                (*number, *object, contents)
            }
            (what, _) => {
                let is_small = matches!(what, What::Small(..));
                self.medium.fence();
                if is_small && !self.sup.model.is_logged() && slot.0 / LINE_BYTES == word.0 / LINE_BYTES {
                    // Lines of slots are void here, since batches settle them.
                    self.enter_cache().lane.count_reserved(-1);
                    self.store_durably(&[(slot.0, reserved.at().0), (word.0, value)]);
                    return Ok(());
                }
                return self.link([Part::Alloc(slot, reserved), Part::Set(word, value)]);
            }
        };
        let guard = self.enter(1);
        guard.lane.count_reserved(-1);
        let fixed = Fixed { len: (SIZES[number] / 16) as u16, mid: object.mid(), words, check };
        let redo = fixed.redo(slot.0, object.at(), (word.0, value));
        guard.lane.commit_one(&self.medium, self.stamp(), &redo);
        Ok(())
    }

    fn check_two(&self, slot: Slot, word: Slot) -> Result<(), Error> {
        self.check_slot(slot)?;
        self.check_slot(word)?;
        if slot == word { Err(Error::Twice { at: slot.0 }) } else { Ok(()) }
    }
}
