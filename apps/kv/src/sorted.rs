//! Inner nodes: immutable arrays of children, by their smallest keys.
//!
//! `heads[i]` has the eight bytes of child `i`'s key behind the prefix common to all, so that a
//! search reads one dense array. The first child serves all smaller keys too, so the prefix leaves
//! out its key.

use std::sync::Arc;

/// Its smallest key.
pub trait Low {
    fn low(&self) -> &[u8];
}

pub struct Sorted<T> {
    items: Vec<Arc<T>>,
    heads: Vec<u64>,
    prefix: Vec<u8>,
}

/// Compares as the first eight bytes do, except for zeros at the end.
fn head_of(bytes: &[u8]) -> u64 {
    match bytes.first_chunk() {
        Some(chunk) => u64::from_be_bytes(*chunk),
        None => {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_be_bytes(word)
        }
    }
}

impl<T: Low> Sorted<T> {
    /// Not empty, and in order.
    pub fn new(items: Vec<Arc<T>>) -> Self {
        let prefix = match (items.get(1), items.last()) {
            (Some(first), Some(last)) => {
                let (first, last) = (first.low(), last.low());
                let common = first.iter().zip(last).take_while(|(a, b)| a == b).count();
                first[..common].to_vec()
            }
            _ => Vec::new(),
        };
        let skip = prefix.len();
        let heads = items.iter().enumerate().map(|(i, item)| if i == 0 { 0 } else { head_of(&item.low()[skip..]) });
        Self { heads: heads.collect(), items, prefix }
    }

    pub fn items(&self) -> &[Arc<T>] {
        &self.items
    }

    /// The child whose range holds `key`.
    pub fn place(&self, key: &[u8]) -> usize {
        let n = self.items.len();
        if n <= 1 {
            return 0;
        }
        let skip = self.prefix.len();
        if !key.starts_with(&self.prefix) {
            return if key < &self.prefix[..] { 0 } else { n - 1 };
        }
        let head = head_of(&key[skip..]);
        let heads = &self.heads[1..];
        let below = heads.partition_point(|h| *h < head);
        // Rarely a child has this head.
        if heads.get(below).is_none_or(|h| *h != head) {
            return below;
        }
        let equal = heads[below..].partition_point(|h| *h == head);
        let tied = &self.items[1 + below..1 + below + equal];
        below + tied.partition_point(|item| item.low() <= key)
    }

    #[inline]
    pub fn child(&self, key: &[u8]) -> &Arc<T> {
        &self.items[self.place(key)]
    }

    pub fn place_of(&self, item: &Arc<T>) -> Option<usize> {
        let place = self.place(item.low());
        Arc::ptr_eq(&self.items[place], item).then_some(place)
    }

    /// A copy with others, in order, in place of one child.
    pub fn with(&self, place: usize, others: impl IntoIterator<Item = Arc<T>>) -> Self {
        let mut items = Vec::with_capacity(self.items.len() + 1);
        items.extend_from_slice(&self.items[..place]);
        items.extend(others);
        items.extend_from_slice(&self.items[place + 1..]);
        Self::new(items)
    }
}

#[cfg(test)]
mod tests;
