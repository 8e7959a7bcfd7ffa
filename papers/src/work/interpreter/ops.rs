//! The operations that the language has of itself.
//!
//! **Failure.** Arguments of the wrong kind or number: the operation and the arguments, in words.

use super::value::Value;
use craton_lab::rng::Rng;

/// Names the operations once, for the enum and for the look-up.
macro_rules! ops {
    ($($op:ident $name:literal,)*) => {
        /// An operation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Op { $($op,)* }

        impl Op {
            /// The operation of that name.
            pub fn find(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$op),)*
                    _ => None,
                }
            }
        }
    };
}

ops! {
    Add "+", Sub "-", Mul "*", Rem "%", Less "<", Same "=",
    // Strings: shown in a row; by bytes; with and without what is between.
    Str "str", Part "part", Split "split", Join "join", Upper "upper", Replace "replace", Int "int",
    // Lists, and the length of anything.
    List "list", At "at", Push "push", Sort "sort", Len "len",
    // Tables: an entry or what else is given, in the order of the keys.
    Table "table", Get "get", Put "put", Keys "keys",
    Rand "rand",
}

impl Op {
    /// What it gives for these arguments.
    pub fn apply(self, arguments: &[Value], rng: &mut Rng) -> Result<Value, String> {
        use Value::{Int, List, Nil, Str, Table};
        Ok(match (self, arguments) {
            (Self::Add, [Int(a), Int(b)]) => Int(a.wrapping_add(*b)),
            (Self::Sub, [Int(a), Int(b)]) => Int(a.wrapping_sub(*b)),
            (Self::Mul, [Int(a), Int(b)]) => Int(a.wrapping_mul(*b)),
            (Self::Rem, [Int(a), Int(b)]) if *b != 0 => Int(a.wrapping_rem(*b)),
            (Self::Less, [a, b]) => Int(i64::from(a.order(b).is_lt())),
            (Self::Same, [a, b]) => Int(i64::from(a.order(b).is_eq())),
            (Self::Str, values) => {
                let mut text = String::new();
                values.iter().for_each(|value| value.show(&mut text));
                Value::str(text)
            }
            // Cut to what there is; the language's strings are ASCII.
            (Self::Part, [Str(text), Int(from), Int(count)]) => {
                let from = text.len().min(usize::try_from(*from).unwrap_or(0));
                let end = text.len().min(from + usize::try_from(*count).unwrap_or(0));
                Value::str(text.get(from..end).unwrap_or(""))
            }
            (Self::Split, [Str(text), Str(by)]) if by.is_empty() => {
                Value::list(text.chars().map(|c| Value::str(c.encode_utf8(&mut [0; 4]) as &str)).collect())
            }
            (Self::Split, [Str(text), Str(by)]) => Value::list(text.split(&**by).map(Value::str).collect()),
            (Self::Join, [List(values), Str(by)]) => {
                let mut text = String::new();
                for (i, value) in values.borrow().iter().enumerate() {
                    text.push_str(if i == 0 { "" } else { by });
                    value.show(&mut text);
                }
                Value::str(text)
            }
            (Self::Upper, [Str(text)]) => Value::str(text.to_uppercase()),
            (Self::Replace, [Str(text), Str(what), Str(by)]) => Value::str(text.replace(&**what, by)),
            (Self::Int, [Str(text)]) => text.parse().map_or(Nil, Int),
            (Self::List, values) => Value::list(values.to_vec()),
            (Self::At, [List(values), Int(at)]) => {
                usize::try_from(*at).ok().and_then(|at| values.borrow().get(at).cloned()).unwrap_or(Nil)
            }
            (Self::Push, [List(values), value]) => {
                values.borrow_mut().push(value.clone());
                Nil
            }
            (Self::Sort, [List(values)]) => {
                let mut sorted = values.borrow().clone();
                sorted.sort_by(Value::order);
                Value::list(sorted)
            }
            (Self::Len, [Str(text)]) => Int(text.len() as i64),
            (Self::Len, [List(values)]) => Int(values.borrow().len() as i64),
            (Self::Len, [Table(table)]) => Int(table.borrow().len() as i64),
            (Self::Table, []) => Value::table(),
            (Self::Get, [Table(table), Str(key), or]) => table.borrow().get(key).unwrap_or(or).clone(),
            (Self::Put, [Table(table), Str(key), value]) => {
                table.borrow_mut().insert(key.clone(), value.clone());
                Nil
            }
            (Self::Keys, [Table(table)]) => {
                let mut keys: Vec<Value> = table.borrow().keys().cloned().map(Str).collect();
                keys.sort_by(Value::order);
                Value::list(keys)
            }
            (Self::Rand, [Int(bound)]) if *bound > 0 => {
                Int(i64::from(rng.below(u32::try_from(*bound).unwrap_or(u32::MAX))))
            }
            _ => return Err(format!("{self:?} does not take {arguments:?}")),
        })
    }
}
