//! The standard library's, or loom's.

#[cfg(loom)]
pub use craton_base::loom::sync::{Mutex, MutexGuard};
#[cfg(not(loom))]
pub use std::sync::{Mutex, MutexGuard};
#[cfg(not(loom))]
pub use std::thread_local as words;

/// loom's.
#[cfg(loom)]
macro_rules! words {
    ($($(#[$attribute:meta])* static $name:ident: $type:ty = const { $first:expr };)*) => {
        craton_base::loom::thread_local! { $($(#[$attribute])* static $name: $type = $first;)* }
    };
}
#[cfg(loom)]
pub(crate) use words;
