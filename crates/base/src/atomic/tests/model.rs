//! loom's atomics behind the constructors of `core`'s, and the runner of models.
//!
//! **What.** loom's atomics exist only in a running model; the library's are constants, statics, or
//! zeroed memory. An atomic here takes its initial value at its first touch in each run.
//! **Threads.** A model first touches alone what two threads would touch unordered.
//! **Orderings.** loom treats SeqCst as AcqRel, so a fence precedes each such access.
//! **Unsafe.** Cells written without a lock: loom runs one thread at a time.

extern crate std;

use core::cell::UnsafeCell;
use core::fmt;
use core::mem::MaybeUninit;
use core::sync::atomic::Ordering;
use std::sync::atomic as plain;

/// An atomic of another run begins anew.
static RUN: plain::AtomicU64 = plain::AtomicU64::new(0);
static WEAKENED: plain::AtomicBool = plain::AtomicBool::new(false);
static ONE_MODEL: std::sync::Mutex<()> = std::sync::Mutex::new(());

pub fn check(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    run(preemptions, false, model);
}

/// A model that needs an ordering panics.
pub fn check_weakened(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    run(preemptions, true, model);
}

fn run(preemptions: usize, weakened: bool, model: impl Fn() + Send + Sync + 'static) {
    let _one = ONE_MODEL.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    WEAKENED.store(weakened, Ordering::Relaxed);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(preemptions);
    builder.max_branches = 60_000;
    let before = RUN.load(Ordering::Relaxed);
    builder.check(move || {
        RUN.fetch_add(1, Ordering::Relaxed);
        model();
    });
    std::println!("{} orders of the steps", RUN.load(Ordering::Relaxed) - before);
}

fn weaken(order: Ordering) -> Ordering {
    if WEAKENED.load(Ordering::Relaxed) { Ordering::Relaxed } else { order }
}

fn access<R>(order: Ordering, f: impl FnOnce(Ordering) -> R) -> R {
    let order = weaken(order);
    // ORDERING: pairs with the fences before other such accesses.
    if order == Ordering::SeqCst {
        loom::sync::atomic::fence(order);
    }
    f(order)
}

macro_rules! atomic {
    ($name:ident $(<$p:ident>)?, $value:ty, $($method:ident),*) => {
        pub struct $name $(<$p>)? {
            first: $value,
            run: UnsafeCell<u64>,
            inner: UnsafeCell<MaybeUninit<loom::sync::atomic::$name $(<$p>)?>>,
        }

        // SAFETY: loom's own may be sent and shared, and is made while one thread runs.
        unsafe impl $(<$p>)? Send for $name $(<$p>)? {}
        // SAFETY: as above.
        unsafe impl $(<$p>)? Sync for $name $(<$p>)? {}

        impl $(<$p>)? $name $(<$p>)? {
            pub const fn new(first: $value) -> Self {
                Self { first, run: UnsafeCell::new(0), inner: UnsafeCell::new(MaybeUninit::uninit()) }
            }

            #[track_caller]
            fn inner(&self) -> &loom::sync::atomic::$name $(<$p>)? {
                let run = RUN.load(Ordering::Relaxed);
                // SAFETY: one thread runs at a time; an atomic of an earlier run owns nothing.
                unsafe {
                    if *self.run.get() != run {
                        (*self.inner.get()).write(loom::sync::atomic::$name::new(self.first));
                        *self.run.get() = run;
                    }
                    (*self.inner.get()).assume_init_ref()
                }
            }

            #[track_caller]
            pub fn load(&self, order: Ordering) -> $value {
                access(order, |o| self.inner().load(o))
            }

            #[track_caller]
            pub fn store(&self, value: $value, order: Ordering) {
                access(order, |o| self.inner().store(value, o))
            }

            #[track_caller]
            pub fn compare_exchange(
                &self,
                old: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                access(success, |o| self.inner().compare_exchange(old, new, o, weaken(failure)))
            }

            #[track_caller]
            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                access(order, |o| self.inner().swap(value, o))
            }

            $(
                #[track_caller]
                pub fn $method(&self, value: $value, order: Ordering) -> $value {
                    access(order, |o| self.inner().$method(value, o))
                }
            )*
        }

        impl $(<$p>)? fmt::Debug for $name $(<$p>)? {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(stringify!($name))
            }
        }
    };
}

macro_rules! integer {
    ($name:ident, $value:ty) => {
        atomic!($name, $value, fetch_add, fetch_sub, fetch_and, fetch_or, fetch_max);

        impl Default for $name {
            fn default() -> Self {
                Self::new(0)
            }
        }
    };
}

integer!(AtomicU8, u8);
integer!(AtomicU16, u16);
integer!(AtomicU32, u32);
integer!(AtomicU64, u64);
integer!(AtomicUsize, usize);
integer!(AtomicI32, i32);
atomic!(AtomicBool, bool,);
atomic!(AtomicPtr<T>, *mut T,);

/// loom's threads share the thread pointer, so this counts them.
pub fn thread_pointer() -> usize {
    let name = std::format!("{:?}", loom::thread::current().id());
    let digits = name.bytes().filter(u8::is_ascii_digit).fold(0usize, |n, b| n * 10 + usize::from(b - b'0'));
    (digits + 1) << 4
}
