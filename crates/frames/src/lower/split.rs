//! Frees of parts of wholes (LLFree §4.2.2; crashes: [`recover`](super::recover)). *Pending* elects
//! the splitting thread; others wait.

use super::{Lower, QUARTER_ROWS, Refused};
use crate::child::Child;
use crate::geometry::Geometry;
use crate::media::Media;
use crate::word::Word;
use craton_base::atomic;

impl<G: Geometry, M: Media> Lower<'_, G, M> {
    #[cold]
    pub(super) fn split(&self, child: usize, quarter: usize, frame: usize, order: u32) -> Result<Child, Refused> {
        loop {
            match self.update(child, |entry| entry.without_quarters(1 << quarter).and(entry.begin())) {
                Ok(_) => break,
                // Another thread split it: bits decide.
                Err(entry) if !entry.has_quarter(quarter) => return Err(Refused::Again),
                Err(_) => atomic::spin(),
            }
        }
        let freed = (frame % G::HUGE) >> G::ROW_ORDER;
        for row in quarter * QUARTER_ROWS..(quarter + 1) * QUARTER_ROWS {
            let mask = if row == freed { Self::bits(frame, order) } else { 0 };
            // A thread that set a bit and sees the quarter clears it.
            while self.row(child, row).exchange(0, G::FULL_ROW & !mask).is_err() {
                atomic::spin();
            }
            self.media.changed(self.row(child, row));
            self.media.flush(self.row(child, row));
        }
        // Bits first: a crash in between leaves the quarter as it was.
        self.media.fence();
        if M::PERSISTS {
            return self.end_split(child, quarter, order);
        }
        let end = |entry: Child| entry.without_quarters(1 << quarter).map(|e| e.end().give(1 << order));
        self.update(child, end).map_err(|_| Refused::Again)
    }

    /// Ends *pending* once it is durable that bits decide.
    fn end_split(&self, child: usize, quarter: usize, order: u32) -> Result<Child, Refused> {
        self.update(child, |entry| entry.without_quarters(1 << quarter)).map_err(|_| Refused::Again)?;
        self.persist(self.word(child));
        self.update(child, |entry| Some(entry.end().give(1 << order))).map_err(|_| Refused::Again)
    }
}
