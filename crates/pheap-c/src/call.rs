//! The result of a call, and its thread's message. A panic ends here; its text does not go to
//! standard error.
//!
//! **Unsafe.** Takes heaps from C.

use crate::code::{Code, Failure};
use crate::handle::Pheap;
use std::cell::{Cell, RefCell};
use std::ffi::{c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// Empty, or ends with a zero byte.
    static MESSAGE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

fn keep_quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let other = take_hook();
        set_hook(Box::new(move |info| {
            if INSIDE.get() {
                PANIC.with_borrow_mut(|text| *text = info.to_string().replace('\n', ": "));
            } else {
                other(info);
            }
        }));
    });
}

fn report(call: &str, of: &str, failure: &Failure) -> c_int {
    let of = if of.is_empty() { String::new() } else { format!("{of}: ") };
    let text = format!("{call}: {of}{failure}").replace('\0', "?");
    // A thread that is ending has no place for it.
    let _ = MESSAGE.try_with(|message| *message.borrow_mut() = (text + "\0").into_bytes());
    failure.code() as c_int
}

pub fn run(call: &str, of: &str, f: impl FnOnce() -> Result<(), Failure>) -> c_int {
    keep_quiet();
    let before = INSIDE.replace(true);
    let result = catch_unwind(AssertUnwindSafe(f));
    INSIDE.set(before);
    match result {
        Ok(Ok(())) => 0,
        Ok(Err(failure)) => report(call, of, &failure),
        Err(_) => report(call, of, &Failure::Panicked(PANIC.take())),
    }
}

/// # Safety
/// `heap` is null or open.
pub unsafe fn on(call: &str, heap: *const Pheap, f: impl FnOnce(&Pheap) -> Result<(), Failure>) -> c_int {
    // SAFETY: by the contract.
    let Some(heap) = (unsafe { Pheap::of(heap) }) else {
        return report(call, "", &Failure::Argument("the heap", "is null, or was closed"));
    };
    let status = run(call, heap.path(), || {
        heap.check_sound()?;
        f(heap)
    });
    if status == Code::Panicked as c_int {
        heap.mark_unsound();
    }
    status
}

#[unsafe(no_mangle)]
pub extern "C" fn craton_pheap_message() -> *const c_char {
    let text = MESSAGE.try_with(|message| message.borrow().first().map(|byte| (&raw const *byte).cast()));
    text.ok().flatten().unwrap_or(c"".as_ptr())
}

#[unsafe(no_mangle)]
pub extern "C" fn craton_pheap_strerror(error: c_int) -> *const c_char {
    Code::text(error).as_ptr()
}
