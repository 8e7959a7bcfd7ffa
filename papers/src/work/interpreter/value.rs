//! The values of the language.
//!
//! **What.** Every value but a whole number is on the heap and counted: strings never change, lists and tables do.
//!
//! **State.** Tables are walked in the order of their keys alone, so that no hash function shows in a result.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::rc::Rc;

/// Strings to values. A fixed hash function: the table's growth is the same in each run.
pub type Table = HashMap<Rc<str>, Value, BuildHasherDefault<DefaultHasher>>;

/// A value; lists and tables are shared, not copied.
#[derive(Clone, Debug)]
pub enum Value {
    Nil,
    Int(i64),
    Str(Rc<str>),
    List(Rc<RefCell<Vec<Value>>>),
    Table(Rc<RefCell<Table>>),
}

impl Value {
    /// A string.
    pub fn str(text: impl Into<Rc<str>>) -> Self {
        Self::Str(text.into())
    }

    /// A list of these.
    pub fn list(values: Vec<Self>) -> Self {
        Self::List(Rc::new(RefCell::new(values)))
    }

    /// A table without entries.
    pub fn table() -> Self {
        Self::Table(Rc::default())
    }

    /// What a condition takes for true: all but nil and 0.
    pub fn is_true(&self) -> bool {
        !matches!(self, Self::Nil | Self::Int(0))
    }

    /// Appends it as `str` and `join` show it; a list or table by how much it holds.
    pub fn show(&self, to: &mut String) {
        use std::fmt::Write;
        _ = match self {
            Self::Nil => Ok(()),
            Self::Int(value) => write!(to, "{value}"),
            Self::Str(text) => to.write_str(text),
            Self::List(values) => write!(to, "[{}]", values.borrow().len()),
            Self::Table(table) => write!(to, "{{{}}}", table.borrow().len()),
        };
    }

    /// The order of `sort`: numbers before strings; what has no order is alike.
    pub fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => a.cmp(b),
            (Self::Str(a), Self::Str(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Nil => 0,
            Self::Int(_) => 1,
            Self::Str(_) => 2,
            Self::List(_) | Self::Table(_) => 3,
        }
    }

    /// A number that depends on all that it holds, for the checksum.
    pub fn digest(&self) -> u64 {
        let join = |sum: u64, next: u64| sum.wrapping_mul(0x100_0000_01b3).wrapping_add(next ^ 0x55);
        match self {
            Self::Nil => 1,
            Self::Int(value) => value.cast_unsigned(),
            Self::Str(text) => text.bytes().fold(2, |sum, byte| join(sum, u64::from(byte))),
            Self::List(values) => values.borrow().iter().fold(3, |sum, value| join(sum, value.digest())),
            // The order of a table's entries does not count.
            Self::Table(table) => table.borrow().iter().fold(4, |sum: u64, (key, value)| {
                sum.wrapping_add(join(Self::Str(key.clone()).digest(), value.digest()))
            }),
        }
    }
}
