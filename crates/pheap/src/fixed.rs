//! Publishing an object with contents that do not change before it is freed, and a word beside its
//! slot: one redo line, one fence.
//!
//! **Invariants.** *NX1* A line of [`Kind::Publish`] counts if its object has the contents of the
//! line's check, or if a later line frees the object: that one was committed behind this one's
//! fence.
//!
//! **Failure.** The line has no room for old values, so recovery cannot tell a later store of the
//! application from an older one (NR3). Slot and word are changed by the heap alone.

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
    /// alone. An error returns the object to the heap.
    pub fn publish_fixed(&self, slot: Slot, reserved: Reserved, word: Slot, value: u64) -> Result<(), Error> {
        let contents = if M::FLUSHES { reserved.contents } else { Some((0, 0)) };
        let (number, object, (words, check)) = match (&reserved.what, contents) {
            (What::Small(number, object), Some(contents)) if self.sup.model.is_logged() && !object.is_guest() => {
                (*number, *object, contents)
            }
            _ => {
                self.medium.fence();
                return self.link([Part::Alloc(slot, reserved), Part::Set(word, value)]);
            }
        };
        let checked = self.check_slot(slot).and_then(|()| self.check_slot(word));
        let distinct = if slot == word { Err(Error::Twice { at: slot.0 }) } else { Ok(()) };
        if let Err(error) = checked.and(distinct) {
            self.cancel(reserved);
            return Err(error);
        }
        let guard = self.enter(1);
        guard.lane.count_reserved(-1);
        let fixed = Fixed { len: (SIZES[number] / 16) as u16, mid: object.mid(), words, check };
        let redo = fixed.redo(slot.0, object.at(), (word.0, value));
        guard.lane.commit_one(&self.medium, self.stamp(), &redo);
        Ok(())
    }
}
