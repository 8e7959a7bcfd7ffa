//! Which functions that allocate and free form pairs (C++17 \[new.delete\]). A family is a number,
//! so that it can be a constant argument.

use crate::report::{Finding, Mistake};
use crate::table::{Buffer, State};
use crate::{Kit, Process};

pub const ANY: u8 = 0;
pub const C: u8 = 1;
pub const NEW: u8 = 2;
pub const NEW_ARRAY: u8 = 3;
pub const NEW_ALIGNED: u8 = 4;
pub const NEW_ARRAY_ALIGNED: u8 = 5;
/// Rust's, which frees small objects by size alone.
pub const TRUSTED: u8 = 6;

pub const fn aligned(family: u8) -> u8 {
    match family {
        NEW => NEW_ALIGNED,
        NEW_ARRAY => NEW_ARRAY_ALIGNED,
        other => other,
    }
}

pub(crate) fn names(family: u8) -> (&'static str, &'static str) {
    match family {
        NEW => ("operator new", "operator delete"),
        NEW_ARRAY => ("operator new[]", "operator delete[]"),
        NEW_ALIGNED => ("operator new with an alignment", "operator delete with an alignment"),
        NEW_ARRAY_ALIGNED => ("operator new[] with an alignment", "operator delete[] with an alignment"),
        _ => ("malloc or one of its kin", "free or realloc"),
    }
}

fn of_call(call: &str, with_align: bool) -> u8 {
    let plain = match call {
        "operator delete" => NEW,
        "operator delete[]" => NEW_ARRAY,
        "free" | "cfree" | "free_sized" | "free_aligned_sized" | "realloc" | "reallocarray" => C,
        _ => ANY,
    };
    if with_align { aligned(plain) } else { plain }
}

impl<P: Process> Kit<P> {
    /// A finding if another family allocated the live buffer.
    pub fn check_pair(&self, pointer: *mut u8, call: &'static str, with_align: bool) -> Result<(), Finding> {
        self.table.get(pointer as usize).map_or(Ok(()), |buffer| check(&buffer, call, with_align))
    }
}

pub(crate) fn check(buffer: &Buffer, call: &'static str, with_align: bool) -> Result<(), Finding> {
    let family = of_call(call, with_align);
    let is_known = buffer.family != ANY && family != ANY && buffer.state == State::Live;
    if is_known && buffer.family != family {
        return Err(Finding {
            mistake: Mistake::Mismatch { call: if family == C { call } else { names(family).1 } },
            buffer: *buffer,
        });
    }
    Ok(())
}

#[cfg(all(test, not(loom)))]
mod tests;
