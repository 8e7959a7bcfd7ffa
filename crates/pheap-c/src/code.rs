use craton_persistent::{Error, FileError, HeapError};
use std::ffi::CStr;
use std::fmt;

/// As in `craton_pheap.h`; a test compares.
macro_rules! codes {
    ($($name:ident = $number:literal, $text:literal;)*) => {
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Code {
            $($name = $number),*
        }

        impl Code {
            #[cfg(test)]
            pub const ALL: &[(&str, i32)] = &[$((stringify!($name), $number)),*];

            pub fn text(number: i32) -> &'static CStr {
                match number {
                    0 => c"no error",
                    $($number => $text,)*
                    _ => c"unknown error",
                }
            }
        }
    };
}

codes! {
    Argument = 1, c"a bad argument";
    NoMemory = 2, c"no free range is long enough, and the heap cannot grow: the disk is full, or its limit is reached";
    NoSize = 3, c"an object of 0 bytes";
    TooLarge = 4, c"more bytes than the heap can hold";
    NotASlot = 5, c"not a slot: not a multiple of 8, or outside roots and objects";
    Null = 6, c"the slot holds no object";
    NotAnObject = 7, c"not the beginning of an object of this heap";
    AlreadyFree = 8, c"the object is free already";
    Foreign = 9, c"the address does not lie in this heap";
    OutOfRange = 10, c"the range does not lie in this heap";
    Twice = 11, c"a slot or an object is named twice";
    TooMany = 12, c"more changes in one step than the heap allows";
    TooManyTransactions = 13, c"more transactions at once than the heap has lanes";
    NotReserved = 14, c"not an object that is reserved";
    Cancelled = 15, c"the constructor refused";
    Busy = 16, c"transactions are open";
    Forked = 17, c"this process was forked: only the process that opened the heap may change it";
    NoRoot = 20, c"there is no root of this name";
    RootExists = 21, c"there is a root of this name already";
    RootInUse = 22, c"the root still holds an object";
    RootName = 23, c"a root's name has 1 to 39 bytes";
    RootType = 24, c"the root was made for another type";
    RootsFull = 25, c"the table of roots is full";
    NoSyncPoints = 30, c"the heap was not opened with sync points";
    HasJournal = 31, c"the heap was used with sync points and not closed: open it so again";
    JournalAlone = 32, c"no such file, but its journal is there: restore the heap, or remove the journal";
    NoJournal = 33, c"the heap was not closed, and its journal is missing or empty: restore it";
    OtherJournal = 34, c"the journal is of another heap, or of this one at another time: restore the right one";
    Missing = 40, c"no such file";
    Exists = 41, c"the file exists, or the device holds a heap";
    InUse = 42, c"the file is open already, here or in another process";
    NotAFile = 43, c"not a file with contents";
    ReadOnly = 44, c"the file can only be read";
    Denied = 45, c"permission denied";
    Length = 46, c"the length is not a whole number of pages";
    TooLong = 47, c"the file is longer than the limit";
    Full = 48, c"no space left";
    AddressSpace = 49, c"the process has no address space of this size";
    System = 50, c"a system call failed";
    NoWriteBack = 51, c"the processor cannot write a cache line back";
    NotAHeap = 60, c"not a persistent heap";
    Version = 61, c"a heap of another version";
    Damaged = 62, c"the heap is damaged";
    Truncated = 63, c"the file is shorter than the heap";
    Config = 64, c"a setting that a heap cannot have";
    Panicked = 90, c"an earlier call found damage or a bug: close the heap";
}

#[derive(Debug)]
pub enum Failure {
    Heap(Error),
    /// Of the root of this name.
    Root(String, Error),
    Argument(&'static str, &'static str),
    Foreign(usize),
    /// For a slot.
    Value(u64),
    NotReserved(usize),
    Cancelled(i32),
    Busy(usize),
    Panicked(String),
}

impl<E: Into<Error>> From<E> for Failure {
    fn from(why: E) -> Self {
        Self::Heap(why.into())
    }
}

impl Failure {
    pub fn code(&self) -> Code {
        match self {
            Self::Heap(why) | Self::Root(_, why) => of_error(*why),
            Self::Argument(..) => Code::Argument,
            Self::Foreign(_) => Code::Foreign,
            Self::Value(_) => Code::OutOfRange,
            Self::NotReserved(_) => Code::NotReserved,
            Self::Cancelled(_) => Code::Cancelled,
            Self::Busy(_) => Code::Busy,
            Self::Panicked(_) => Code::Panicked,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Heap(why) => write!(f, "{why}"),
            Self::Root(name, why) => write!(f, "root \"{name}\": {why}"),
            Self::Argument(name, why) => write!(f, "{name} {why}"),
            Self::Foreign(at) => write!(f, "the address {at:#x} does not lie in this heap"),
            Self::Value(value) => write!(f, "the value {value:#x} for the slot is no offset in this heap"),
            Self::NotReserved(at) => write!(f, "the object at {at:#x} is not reserved"),
            Self::Cancelled(value) => write!(f, "the constructor returned {value}"),
            Self::Busy(transactions) => write!(f, "transactions are open: {transactions}"),
            Self::Panicked(why) => write!(f, "found damage or a bug, close the heap: {why}"),
        }
    }
}

fn of_error(why: Error) -> Code {
    match why {
        Error::File(why) => of_file(why),
        Error::Heap(why) => of_heap(why),
        Error::Path => Code::Argument,
        Error::HoldsHeap => Code::Exists,
        Error::HasJournal => Code::HasJournal,
        Error::JournalAlone => Code::JournalAlone,
        Error::Forked => Code::Forked,
        Error::NoSyncPoints => Code::NoSyncPoints,
        Error::RootType { .. } => Code::RootType,
        Error::Null => Code::Null,
        _ => Code::System,
    }
}

fn of_file(why: FileError) -> Code {
    match why {
        FileError::Missing => Code::Missing,
        FileError::Exists => Code::Exists,
        FileError::InUse => Code::InUse,
        FileError::NotAFile => Code::NotAFile,
        FileError::ReadOnly => Code::ReadOnly,
        FileError::Denied(_) => Code::Denied,
        FileError::Length(_) => Code::Length,
        FileError::TooLong(_) => Code::TooLong,
        FileError::Full(_) => Code::Full,
        FileError::AddressSpace(_) => Code::AddressSpace,
        FileError::NoWriteBack => Code::NoWriteBack,
        FileError::LeftOpen => Code::HasJournal,
        FileError::NoJournal => Code::NoJournal,
        FileError::OtherJournal => Code::OtherJournal,
        FileError::Journal | FileError::Damaged(_) | FileError::Mark => Code::Damaged,
        _ => Code::System,
    }
}

fn of_heap(why: HeapError) -> Code {
    match why {
        HeapError::NoMemory => Code::NoMemory,
        HeapError::NoSize => Code::NoSize,
        HeapError::TooLarge { .. } => Code::TooLarge,
        HeapError::NotASlot { .. } => Code::NotASlot,
        HeapError::Null { .. } => Code::Null,
        HeapError::NotAnObject { .. } => Code::NotAnObject,
        HeapError::AlreadyFree { .. } => Code::AlreadyFree,
        HeapError::Twice { .. } => Code::Twice,
        HeapError::TooManyTransactions => Code::TooManyTransactions,
        HeapError::TooMany { .. } => Code::TooMany,
        HeapError::OutOfRange { .. } => Code::OutOfRange,
        HeapError::NoRoot => Code::NoRoot,
        HeapError::RootExists { .. } => Code::RootExists,
        HeapError::RootInUse { .. } => Code::RootInUse,
        HeapError::RootName { .. } => Code::RootName,
        HeapError::RootsFull => Code::RootsFull,
        HeapError::Config { .. } => Code::Config,
        HeapError::NotAHeap { .. } => Code::NotAHeap,
        HeapError::Version { .. } => Code::Version,
        HeapError::Truncated { .. } => Code::Truncated,
        _ => Code::Damaged,
    }
}
