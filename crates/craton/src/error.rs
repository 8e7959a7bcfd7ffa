/// Why a request was refused. Nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Error {
    /// No memory, a limit is reached, or an impossible size or alignment.
    NoMemory,
    /// More than 31 bytes, or others than printable ASCII without `"` and `\`.
    Name,
    /// No such option, or no such value.
    Option,
    /// More than 31 bytes, invisible characters or one of `"\:+,=`, a number, `large` or `malloc`.
    CacheName,
    /// Objects of a cache have at most 1 MiB, and an alignment of at most 1 MiB.
    Layout,
    /// The constructor reported a failure.
    Constructor,
    /// A constructor or destructor uses its object's cache.
    Recursive,
    /// No object came back in time.
    TimedOut,
    /// A file cannot be written, by the system's number of the error.
    File(i32),
}

impl core::fmt::Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::NoMemory => {
                "no memory for this size and alignment, or the limit of the heap or object cache is reached"
            }
            Self::Name => "the name of a heap has at most 31 bytes of printable ASCII without \" and \\",
            Self::Option => "no such option, or not a value of it",
            Self::CacheName => {
                "the name of an object cache has at most 31 bytes, without characters that are not seen and \" \\ : + , =, and is no number, large or malloc"
            }
            Self::Layout => "an object of a cache has at most 1 MiB, and is aligned to at most 1 MiB",
            Self::Constructor => "the constructor has failed",
            Self::Recursive => "a constructor or destructor of a cache may not use this cache",
            Self::File(error) => return write!(f, "the file cannot be written: error {error} of the system"),
            Self::TimedOut => "no object of the cache came back in time",
        })
    }
}

impl core::error::Error for Error {}
