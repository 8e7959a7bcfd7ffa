use crate::persist::Persist;
use std::marker::PhantomData;

/// A field's place: `S::name` of a struct made by [`persist!`](crate::persist).
pub struct Field<S, F> {
    offset: u64,
    types: PhantomData<fn(S) -> F>,
}

impl<S, F> Clone for Field<S, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S, F> Copy for Field<S, F> {}

impl<S, F: Persist> Field<S, F> {
    #[doc(hidden)]
    pub const fn new(offset: u64) -> Self {
        Self { offset, types: PhantomData }
    }

    pub const fn offset(self) -> u64 {
        self.offset
    }

    #[doc(hidden)]
    pub fn encode(self, value: &F, to: &mut [u8]) {
        value.encode(&mut to[self.offset as usize..][..F::BYTES as usize]);
    }

    #[doc(hidden)]
    pub fn decode(self, from: &[u8]) -> F {
        F::decode(&from[self.offset as usize..][..F::BYTES as usize])
    }
}

/// Of each field: name, bytes, alignment, whether it has pointers.
#[doc(hidden)]
pub type Layout = [(&'static str, u64, u64, bool)];

/// Where the first `fields` fields end, aligned for the next one.
const fn end(layout: &Layout, fields: usize, align: u64) -> u64 {
    let (mut at, mut i) = (0u64, 0);
    while i < fields {
        at = at.next_multiple_of(layout[i].2) + layout[i].1;
        i += 1;
    }
    at.next_multiple_of(align)
}

#[doc(hidden)]
pub const fn offset(layout: &Layout, i: usize) -> u64 {
    end(layout, i, layout[i].2)
}

#[doc(hidden)]
pub const fn bytes(layout: &Layout) -> u64 {
    end(layout, layout.len(), align(layout))
}

#[doc(hidden)]
pub const fn align(layout: &Layout) -> u64 {
    let (mut most, mut i) = (1, 0);
    while i < layout.len() {
        most = if layout[i].2 > most { layout[i].2 } else { most };
        i += 1;
    }
    most
}

#[doc(hidden)]
pub const fn has_pointers(layout: &Layout) -> bool {
    let (mut any, mut i) = (false, 0);
    while i < layout.len() {
        any |= layout[i].3;
        i += 1;
    }
    any
}

/// Of the hash of a struct's name, and a text and a number of each field.
#[doc(hidden)]
pub const fn tag(mut hash: u64, fields: &[(&str, u64)]) -> u64 {
    let mut i = 0;
    while i < fields.len() {
        hash = crate::hash(hash, fields[i].0.as_bytes());
        hash = crate::hash(hash, &fields[i].1.to_le_bytes());
        i += 1;
    }
    hash
}

/// The struct must have the field.
#[doc(hidden)]
pub const fn index(layout: &Layout, name: &str) -> usize {
    let mut i = 0;
    while !is_equal(layout[i].0.as_bytes(), name.as_bytes()) {
        i += 1;
    }
    i
}

const fn is_equal(a: &[u8], b: &[u8]) -> bool {
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}

/// Makes a struct that may lie in a heap, laid out as in C; `Node::next` is a field's place.
///
/// Its tag hashes the names of struct and fields, and the fields' types with their fields. After a
/// change the root gives [`Error::RootType`](crate::Error::RootType).
///
/// ```
/// use craton_persistent::{PPtr, Persist, persist};
///
/// persist! {
///     /// A node of a list.
///     #[derive(PartialEq, Debug)]
///     pub struct Node {
///         pub next: PPtr<Node>,
///         pub count: u32,
///         pub key: [u8; 20],
///     }
/// }
///
/// assert_eq!((Node::BYTES, Node::key.offset()), (32, 12));
/// ```
#[macro_export]
macro_rules! persist {
    ($(#[$attribute:meta])* $visible:vis struct $name:ident {
        $($(#[$of_field:meta])* $seen:vis $field:ident: $type:ty),* $(,)?
    }) => {
        $(#[$attribute])*
        #[derive(Clone, Copy)]
        $visible struct $name {
            $($(#[$of_field])* $seen $field: $type),*
        }

        #[allow(non_upper_case_globals, dead_code)]
        impl $name {
            const FIELDS: &'static $crate::Layout = &[$((
                stringify!($field),
                <$type as $crate::Persist>::BYTES,
                <$type as $crate::Persist>::ALIGN,
                <$type as $crate::Persist>::HAS_POINTERS,
            )),*];
            $(
                /// The place of the field.
                $seen const $field: $crate::Field<Self, $type> = $crate::Field::new($crate::record::offset(
                    Self::FIELDS,
                    $crate::record::index(Self::FIELDS, stringify!($field)),
                ));
            )*
        }

        impl $crate::Persist for $name {
            const BYTES: u64 = $crate::record::bytes(Self::FIELDS);
            const ALIGN: u64 = $crate::record::align(Self::FIELDS);
            const HAS_POINTERS: bool = $crate::record::has_pointers(Self::FIELDS);
            const TAG: u64 = $crate::record::tag(<Self as $crate::Persist>::NAME, &[$((
                concat!("|", stringify!($field), ":"),
                <$type as $crate::Persist>::TAG,
            )),*]);
            const LAYOUT: u64 = $crate::record::tag(<Self as $crate::Persist>::NAME, &[$((
                concat!("|", stringify!($field), ":"),
                <$type as $crate::Persist>::LAYOUT,
            )),*]);
            const NAME: u64 = $crate::hash($crate::HASH, stringify!($name).as_bytes());
            const OLD_TAG: u64 = $crate::record::tag(<Self as $crate::Persist>::NAME, &[$((
                concat!("|", stringify!($field), ":", stringify!($type)),
                <$type as $crate::Persist>::BYTES,
            )),*]);

            #[inline]
            fn encode(&self, to: &mut [u8]) {
                $(Self::$field.encode(&self.$field, to);)*
            }

            #[inline]
            fn decode(from: &[u8]) -> Self {
                Self { $($field: Self::$field.decode(from)),* }
            }
        }
    };
}
