//! The known peers: a *base* peer is as its makers deliver it, a *variant* has a documented
//! setting. Hugepage settings were checked by `AnonHugePages` with 200 MB live, under `madvise`.

use std::ffi::{OsStr, OsString};

#[derive(Debug)]
pub struct Known {
    pub name: &'static str,
    pub source: Source,
    pub settings: &'static [Setting],
    pub note: Option<Note>,
}

/// What to know of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    pub text: &'static str,
    /// It explains failed runs, and qualifies no figure.
    pub is_fault: bool,
}

impl Note {
    const fn figures(text: &'static str) -> Option<Self> {
        Some(Self { text, is_fault: false })
    }

    const fn fault(text: &'static str) -> Option<Self> {
        Some(Self { text, is_fault: true })
    }
}

impl Known {
    pub fn is_variant(&self) -> bool {
        self.name.contains('+') || ["-thp", "-checks", "-secure"].iter().any(|end| self.name.ends_with(end))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Built(&'static str),
    Installed { file: &'static str, package: &'static str },
    Glibc,
    Craton,
}

#[derive(Debug)]
pub struct Setting {
    pub variable: &'static str,
    /// In a list, one entry `key` + `=` or `:` + value.
    pub value: &'static str,
    /// Of a list: between entries, and between key and value.
    pub list: Option<(u8, u8)>,
}

impl Setting {
    const fn whole(variable: &'static str, value: &'static str) -> Self {
        Self { variable, value, list: None }
    }

    const fn tunable(value: &'static str) -> Self {
        Self { variable: "GLIBC_TUNABLES", value, list: Some((b':', b'=')) }
    }

    const fn malloc_conf(value: &'static str) -> Self {
        Self { variable: "MALLOC_CONF", value, list: Some((b',', b':')) }
    }

    /// A list keeps the user's other entries in order.
    pub fn merged(&self, now: Option<&OsStr>) -> OsString {
        let Some((between, assign)) = self.list else { return self.value.into() };
        let key = |entry: &[u8]| entry.iter().position(|b| *b == assign).map(|at| entry[..at].to_vec());
        let ours = self.value.as_bytes();
        let mut entries: Vec<&[u8]> = now
            .map_or(&[][..], OsStr::as_encoded_bytes)
            .split(|b| *b == between)
            .filter(|entry| !entry.is_empty() && key(entry) != key(ours))
            .collect();
        entries.push(ours);
        std::os::unix::ffi::OsStringExt::from_vec(entries.join(&between))
    }
}

const RSEQ: Setting = Setting::tunable("glibc.pthread.rseq=0");
const JEMALLOC_THP: Setting = Setting::malloc_conf("thp:always");
const RSEQ_NOTE: Option<Note> = Note::figures("without glibc's rseq, which its fast path needs");
const HUGE: Option<Note> = Note::figures("asks for huge pages by itself");

const HARDENED: Setting = Setting { variable: "CRATON_OPTIONS", value: "hardened=1", list: Some((b',', b'=')) };

const fn built(name: &'static str, file: &'static str, settings: &'static [Setting], note: Option<Note>) -> Known {
    Known { name, source: Source::Built(file), settings, note }
}

const fn installed(
    name: &'static str,
    (file, package): (&'static str, &'static str),
    settings: &'static [Setting],
    note: Option<Note>,
) -> Known {
    Known { name, source: Source::Installed { file, package }, settings, note }
}

const DEBIAN_MIMALLOC: (&str, &str) = ("libmimalloc.so.2.0", "libmimalloc2.0");
const DEBIAN_JEMALLOC: (&str, &str) = ("libjemalloc.so.2", "libjemalloc2");
const DEBIAN_TCMALLOC: (&str, &str) = ("libtcmalloc_minimal.so.4", "libtcmalloc-minimal4");
const NO_PVALLOC: Option<Note> =
    Note::fault("lacks pvalloc: a program that calls it gets memory from glibc, and this allocator's free meets it");
const MISALIGNS: Option<Note> = Note::fault("version 2.0.9 does not always align: aligned_alloc(256, 256)");

pub const KNOWN: [Known; 20] = [
    built(
        "tcmalloc",
        "tcmalloc.so",
        // The crate's asks for hugepages; Google's leaves that to the kernel.
        &[RSEQ, Setting::whole("TCMALLOC_DISABLE_MADV_HUGEPAGE", "1")],
        RSEQ_NOTE,
    ),
    built("mimalloc3", "mimalloc3.so", &[], HUGE),
    built("mimalloc2", "mimalloc2.so", &[], HUGE),
    built("jemalloc", "jemalloc.so", &[], None),
    built("snmalloc", "snmalloc.so", &[], None),
    built("rpmalloc", "rpmalloc.so", &[], Note::fault("refuses alignments of 64 KiB and more")),
    installed("debian-mimalloc", DEBIAN_MIMALLOC, &[], MISALIGNS),
    installed("debian-jemalloc", DEBIAN_JEMALLOC, &[], NO_PVALLOC),
    installed("debian-tcmalloc", DEBIAN_TCMALLOC, &[], None),
    built("tcmalloc+thp", "tcmalloc.so", &[RSEQ, Setting::whole("TCMALLOC_DISABLE_MADV_HUGEPAGE", "0")], RSEQ_NOTE),
    // It asks for hugepages without this; with 2 it also releases whole ones.
    built("mimalloc3+thp", "mimalloc3.so", &[Setting::whole("MIMALLOC_ALLOW_THP", "2")], None),
    built("mimalloc3-thp", "mimalloc3.so", &[Setting::whole("MIMALLOC_ALLOW_THP", "0")], None),
    // Asks for reserved hugepages; without any it is mimalloc2.
    built("mimalloc2+large", "mimalloc2.so", &[Setting::whole("MIMALLOC_ALLOW_LARGE_OS_PAGES", "1")], None),
    built("mimalloc2-thp", "mimalloc2.so", &[Setting::whole("MIMALLOC_ALLOW_THP", "0")], None),
    built("jemalloc+thp", "jemalloc.so", &[JEMALLOC_THP], None),
    installed("debian-jemalloc+thp", DEBIAN_JEMALLOC, &[JEMALLOC_THP], NO_PVALLOC),
    built("mimalloc3-secure", "mimalloc3-secure.so", &[], None),
    built("snmalloc-checks", "snmalloc-checks.so", &[], None),
    Known { name: "craton+hardened", source: Source::Craton, settings: &[HARDENED], note: None },
    Known {
        name: "glibc+thp",
        source: Source::Glibc,
        settings: &[Setting::tunable("glibc.malloc.hugetlb=1")],
        note: None,
    },
];
