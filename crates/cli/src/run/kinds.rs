//! The kinds of the debugging kit's reports.

pub struct Kind {
    pub name: &'static str,
    pub text: &'static str,
    /// Of the Common Weakness Enumeration.
    pub weakness: u32,
    /// From 0 to 10, as security severities are.
    pub severity: &'static str,
}

const fn kind(name: &'static str, text: &'static str, weakness: u32, severity: &'static str) -> Kind {
    Kind { name, text, weakness, severity }
}

/// By the alphabet.
pub const KINDS: [Kind; 11] = [
    kind("bad-free", "An address that is no buffer was freed", 590, "7.5"),
    kind(
        "damage",
        "A list of free objects was damaged, mostly by a write past an object or after its free",
        787,
        "8.8",
    ),
    kind("double-free", "A buffer was freed twice", 415, "8.1"),
    kind("leak", "No pointer leads to a buffer any more", 401, "4.0"),
    kind("mismatch", "A function freed a buffer that another family of functions had allocated", 762, "5.5"),
    kind("overflow", "Memory past the end of a buffer was read or written", 122, "8.8"),
    kind("size-mismatch", "A buffer was freed with a wrong size or alignment", 131, "5.5"),
    kind("underflow", "Memory before the start of a buffer was read or written", 124, "8.8"),
    kind("uninitialised", "Memory of a buffer was used before it was written", 908, "6.5"),
    kind("use-after-free", "A buffer was used after it was freed", 416, "8.8"),
    kind("wrong-cache", "A buffer was freed to another owner than its own", 763, "6.5"),
];

/// A kind's place in [`KINDS`].
pub fn index(name: &str) -> Option<usize> {
    KINDS.iter().position(|kind| kind.name == name)
}
