use core::fmt;

/// The state is as before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Error {
    /// No block of the order is free.
    NoMemory,
    /// Above the largest.
    Order { order: u32, most: u32 },
    /// Also if only some frames lie outside the zone.
    OutOfRange { frame: usize, frames: usize },
    /// No multiple of the order's frames.
    Misaligned { frame: usize, order: u32 },
    /// Some frames are free: freed twice, of another order, or never allocated.
    NotAllocated { frame: usize, order: u32 },
    /// Some frames are allocated.
    InUse { frame: usize, order: u32 },
    /// Some frames lie in an offline huge frame.
    Offline { frame: usize },
    /// It is online.
    NotOffline { frame: usize },
    /// Out of order, or more than a tree (in 512ths).
    Thresholds { allocated: u16, free: u16 },
    /// An array must begin with a cache line; `at` is modulo the line.
    Unaligned { array: &'static str, at: usize },
    /// Not below the zone's processors.
    Processor { processor: usize, processors: usize },
    /// Shorter than in [`crate::Sizes`].
    TooSmall { array: &'static str, needed: usize, given: usize },
    /// Never created, or ended.
    NotAZone { found: u64 },
    /// A zone page contradicts itself.
    Damaged { what: &'static str, found: u64 },
    /// Another version.
    Version { found: u64, known: u64 },
    /// log2 of a row's frames; huge frames in a tree << 32.
    Geometry { found: u64, expected: u64 },
    /// The zone has another size.
    OtherFrames { found: usize, expected: usize },
    /// No frames, or more than can be numbered.
    Frames { frames: usize },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NoMemory => write!(f, "no free frames of that order"),
            Self::Order { order, most } => write!(f, "order {order} is above {most}, the largest"),
            Self::OutOfRange { frame, frames } => {
                write!(f, "not all frames that were asked for from {frame} on lie in the zone of {frames} frames")
            }
            Self::Misaligned { frame, order } => {
                write!(f, "frame {frame} is no multiple of {} (order {order})", 1u64 << order)
            }
            Self::NotAllocated { frame, order } => {
                write!(
                    f,
                    "not all of the {} frames from {frame} on are allocated: freed twice, or of another order",
                    1u64 << order
                )
            }
            Self::InUse { frame, order } => {
                write!(f, "not all of the {} frames from {frame} on are free", 1u64 << order)
            }
            Self::Offline { frame } => {
                write!(f, "frame {frame} lies in a huge frame that is offline, or those behind it do")
            }
            Self::NotOffline { frame } => write!(f, "the huge frame at {frame} is not offline"),
            Self::Thresholds { allocated, free } => {
                write!(f, "a tree cannot be nearly full below {allocated} and nearly free above {free} 512ths: ")?;
                write!(f, "the first is to be the smaller one, and neither more than 512")
            }
            Self::Unaligned { array, at } => {
                write!(f, "the {array} begin {at} bytes into a cache line, and are to begin with one")
            }
            Self::Processor { processor, processors } => {
                write!(f, "processor {processor} is none of the {processors} that the zone was made for")
            }
            Self::TooSmall { array, needed, given } => {
                write!(f, "the array of {array} has {given} elements, and {needed} are needed")
            }
            Self::NotAZone { found } => {
                write!(f, "no zone is here, or its creation was never completed: the magic is {found:#x}; create one")
            }
            Self::Damaged { what, found } => {
                write!(f, "the zone is damaged: its {what} is {found:#x}, which does not fit the rest")
            }
            Self::Version { found, known } => {
                write!(f, "the zone is of version {found}, and only {known} is known here")
            }
            Self::Geometry { found, expected } => {
                write!(f, "the zone has rows of 2^{} frames and trees of {} huge frames, ", found & 0xff, found >> 32)?;
                write!(f, "and 2^{} and {} were asked for", expected & 0xff, expected >> 32)
            }
            Self::OtherFrames { found, expected } => {
                write!(f, "the zone has {found} frames, and {expected} were asked for")
            }
            Self::Frames { frames } => write!(f, "a zone of {frames} frames: it has at least 1, and less than 2^36"),
        }
    }
}

impl core::error::Error for Error {}
