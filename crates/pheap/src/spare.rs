//! A thread's vectors for its next batch, which then allocates nothing. Arrays on the stack cost
//! more: they are filled and moved.

use crate::line::PARTS_MOST;
use std::cell::Cell;
use std::thread::LocalKey;

pub type Spare<T> = LocalKey<Cell<Vec<T>>>;

#[inline]
pub fn take<T>(spare: &'static Spare<T>) -> Vec<T> {
    spare.try_with(Cell::take).unwrap_or_default()
}

#[inline]
pub fn put<T>(spare: &'static Spare<T>, mut used: Vec<T>) {
    used.clear();
    if used.capacity() <= 2 * PARTS_MOST {
        let _ = spare.try_with(|spare| spare.set(used));
    }
}

#[cfg(test)]
mod tests {
    use super::{put, take};
    use std::cell::Cell;

    thread_local!(static WORDS: Cell<Vec<u64>> = const { Cell::new(Vec::new()) });

    #[test]
    fn a_vector_is_used_again_unless_it_is_long() {
        let mut first = take(&WORDS);
        first.extend([1, 2, 3]);
        let capacity = first.capacity();
        put(&WORDS, first);
        let second = take(&WORDS);
        assert!(second.is_empty() && second.capacity() == capacity);
        assert_eq!(take(&WORDS).capacity(), 0, "only one is kept");
        put(&WORDS, Vec::with_capacity(10_000));
        assert_eq!(take(&WORDS).capacity(), 0);
    }
}
