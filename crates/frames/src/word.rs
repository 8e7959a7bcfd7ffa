//! Words that threads share.
//!
//! **Threads.** [`Word`]'s accesses are sequentially consistent: of a thread that sets a bit, then
//! reads the entry, and one that changes an entry, then reads the bits, one sees the other;
//! likewise for a tree's set and entry. On x86-64 a change is a locked operation in every ordering.

use craton_base::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

pub(crate) trait Word<V> {
    fn read(&self) -> V;
    fn write(&self, value: V);
    /// Not shared yet.
    fn begin(&self, value: V);
    fn exchange(&self, old: V, new: V) -> Result<V, V>;
    fn replace(&self, value: V) -> V;
    fn add(&self, value: V) -> V;
    fn sub(&self, value: V) -> V;
    fn and(&self, value: V) -> V;
    fn or(&self, value: V) -> V;
}

// ORDERING: each pairs with all others; see above.
const ORDER: Ordering = Ordering::SeqCst;

macro_rules! word {
    ($atomic:ty, $value:ty) => {
        impl Word<$value> for $atomic {
            #[inline(always)]
            fn read(&self) -> $value {
                self.load(ORDER)
            }
            #[inline(always)]
            fn write(&self, value: $value) {
                self.store(value, ORDER);
            }
            #[inline(always)]
            fn begin(&self, value: $value) {
                self.store(value, Ordering::Relaxed);
            }
            #[inline(always)]
            fn exchange(&self, old: $value, new: $value) -> Result<$value, $value> {
                count();
                self.compare_exchange(old, new, ORDER, ORDER)
            }
            #[inline(always)]
            fn replace(&self, value: $value) -> $value {
                count();
                self.swap(value, ORDER)
            }
            #[inline(always)]
            fn add(&self, value: $value) -> $value {
                count();
                self.fetch_add(value, ORDER)
            }
            #[inline(always)]
            fn sub(&self, value: $value) -> $value {
                count();
                self.fetch_sub(value, ORDER)
            }
            #[inline(always)]
            fn and(&self, value: $value) -> $value {
                count();
                self.fetch_and(value, ORDER)
            }
            #[inline(always)]
            fn or(&self, value: $value) -> $value {
                count();
                self.fetch_or(value, ORDER)
            }
        }
    };
}

#[cfg(not(test))]
#[inline(always)]
fn count() {}

#[cfg(test)]
use tests::count;

#[cfg(not(test))]
#[inline(always)]
pub(crate) fn visit() {}

#[cfg(test)]
pub(crate) use tests::visit;

word!(AtomicU16, u16);
word!(AtomicU32, u32);
word!(AtomicU64, u64);

#[cfg(test)]
pub(crate) mod tests;
