//! What can be refused.

/// Why a request was refused. Nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Error {
    /// No memory, a heap's limit is reached, or no such size or alignment can be had.
    NoMemory,
    /// A heap's name has more than 31 bytes, or others than printable ASCII without `"` and `\`.
    Name,
    /// There is no such option, or it has no such value.
    Option,
}

impl core::fmt::Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::NoMemory => "no memory for this size and alignment, or the heap's limit is reached",
            Self::Name => "the name of a heap has at most 31 bytes of printable ASCII without \" and \\",
            Self::Option => "no such option, or not a value of it",
        })
    }
}

impl core::error::Error for Error {}
