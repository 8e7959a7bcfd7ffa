//! The kinds of a kernel's objects, from SunOS 5's statistics; sizes for 64-bit pointers.

use craton_lab::rng::Rng;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kind {
    pub name: String,
    pub bytes: usize,
    /// With locks, lists or counts to construct.
    pub constructed: bool,
    /// For 16 MB, without processes and files.
    pub at_boot: usize,
    /// Allocated by size (`kmem_alloc`).
    pub rare: bool,
}

/// Name, bytes, constructed, objects at boot.
#[rustfmt::skip]
const NAMED: [(&str, usize, bool, usize); NAMES] = [
    ("proc", 1096, true, 0), ("thread", 496, true, 60), ("lwp", 608, true, 0), ("as", 136, true, 2),
    ("seg", 56, false, 200), ("segvn", 88, true, 0), ("anon map", 56, true, 0), ("anon", 40, false, 300),
    ("hat", 120, true, 2), ("hment", 24, false, 2000), ("cred", 96, false, 12), ("file", 56, true, 40),
    ("inode", 328, true, 24), ("vnode", 96, true, 120), ("dnlc entry", 56, false, 0),
    ("snode", 176, true, 90), ("fifonode", 192, true, 0), ("buf", 176, true, 300),
    ("stream head", 264, true, 60), ("queue pair", 272, true, 300), ("syncq", 112, true, 150),
    ("socket", 336, true, 6), ("tcp", 720, true, 16), ("udp", 224, true, 14), ("ip client", 328, true, 40),
    ("transport end point", 160, true, 12), ("message", 56, false, 60), ("data 64", 112, false, 40),
    ("data 128", 176, false, 20), ("data 256", 304, false, 10), ("data 512", 560, false, 6),
    ("data 1536", 1584, false, 40), ("data 4096", 4144, false, 6), ("callout", 40, false, 100),
    ("lock", 112, false, 10), ("sigqueue", 48, false, 4), ("path buffer", 1024, false, 0),
    ("page table", 256, false, 200), ("mount", 232, true, 8), ("quota", 72, false, 0),
    ("device", 200, true, 120), ("interrupt", 64, false, 30), ("disk buffer", 8192, false, 64),
    ("terminal", 424, true, 16), ("timer", 80, false, 20),
];
pub(super) const NAMES: usize = 45;
const DRIVERS: usize = 220;

pub fn kinds() -> Vec<Kind> {
    let named = NAMED.map(|(name, bytes, constructed, at_boot)| Kind {
        name: name.to_owned(),
        bytes,
        constructed,
        at_boot,
        rare: false,
    });
    // Drivers do not depend on the load.
    let mut rng = Rng::new(0x5105, 0);
    let driver = |number: usize| {
        // A few have some thousand bytes.
        let bytes = (24 + rng.skewed(1400) as usize + if rng.one_in(12) { rng.below(5000) as usize } else { 0 }) & !7;
        let at_boot = 1 + rng.skewed(64) as usize;
        Kind { name: format!("driver {number}"), bytes, constructed: rng.one_in(3), at_boot, rare: true }
    };
    named.into_iter().chain((0..DRIVERS).map(driver)).collect()
}

pub(super) fn of(name: &str) -> u16 {
    let place = NAMED.iter().position(|(named, ..)| *named == name);
    place.unwrap_or_else(|| panic!("{name} is no kind")) as u16
}
