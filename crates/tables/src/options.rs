//! The options of `CRATON_OPTIONS`, by the alphabet.

use core::fmt;

/// Of `stats_file` and `trace`, in bytes.
pub const PATH_MOST: usize = 511;
/// The start of the name of the folder that `craton run` makes, with its socket for `stats_file`.
pub const RUN_FOLDER: &str = "craton-run-";
/// The heap's tables take a third of it before the first object.
pub const LIMIT_LEAST: u64 = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Words(&'static [&'static str]),
    Bytes(u64),
    /// From a minimum to a maximum.
    Count(&'static [&'static str], u64, u64),
    /// 0 to 100.
    Percent,
    /// From a minimum on.
    Amount(&'static [&'static str], u64),
    /// At least [`LIMIT_LEAST`] bytes, or a percentage.
    Limit(&'static [&'static str]),
    /// By commas, perhaps targets behind a colon.
    Checks(&'static [&'static str]),
    /// At most [`PATH_MOST`] bytes; empty for none.
    Path,
}

impl Form {
    pub const fn words(&self) -> &'static [&'static str] {
        match *self {
            Self::Words(words)
            | Self::Count(words, ..)
            | Self::Amount(words, _)
            | Self::Limit(words)
            | Self::Checks(words) => words,
            Self::Bytes(_) | Self::Percent | Self::Path => &[],
        }
    }

    pub const fn others(&self) -> &'static [&'static str] {
        match self {
            Self::Words(_) | Self::Checks(_) => &[],
            Self::Bytes(_) | Self::Amount(..) => &["BYTES"],
            Self::Count(..) => &["N"],
            Self::Percent => &["PERCENT"],
            Self::Limit(_) => &["BYTES", "PERCENT%"],
            Self::Path => &["PATH"],
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, word) in self.words().iter().chain(self.others()).enumerate() {
            write!(f, "{}{word}", if i == 0 { "" } else { "|" })?;
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    Live,
    /// Before the process's first request.
    Start,
    Before(&'static str),
}

#[derive(Clone, Copy, Debug)]
pub struct Choice {
    pub key: &'static str,
    pub form: Form,
    pub default: &'static str,
    pub when: When,
    pub refusal: &'static str,
    pub text: &'static str,
    /// For `docs/options.md`; Markdown.
    pub more: &'static str,
}

macro_rules! options {
    ($first:ident $first_key:ident { $($first_row:tt)* } $($name:ident $key:ident { $($row:tt)* })*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Key {
            #[doc = concat!("`", stringify!($first_key), "`")]
            $first,
            $(#[doc = concat!("`", stringify!($key), "`")] $name,)*
        }

        impl Key {
            pub const ALL: [Self; OPTIONS.len()] = [Self::$first $(, Self::$name)*];
        }

        pub const OPTIONS: [Choice; [stringify!($first) $(, stringify!($name))*].len()] = [
            Choice { key: stringify!($first_key), $($first_row)* }
            $(, Choice { key: stringify!($key), $($row)* })*
        ];

        pub const NO_SUCH_KEY: &str = concat!(
            "no such key (keys: ", stringify!($first_key) $(, ", ", stringify!($key))*, "); ignored"
        );
    };
}

impl Key {
    pub fn named(key: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|k| k.row().key.as_bytes() == key)
    }

    pub const fn row(self) -> &'static Choice {
        const ROWS: &[Choice] = &OPTIONS;
        &ROWS[self as usize]
    }
}

use Form::{Amount, Bytes, Checks, Count, Limit, Path, Percent, Words};
use When::{Before, Live, Start};

options! {
    AuditLog audit_log {
        form: Count(&[], 1, 1 << 28), default: "65536", when: Before("`debug=audit` makes the log"),
        refusal: "bad value (1 to 268435456 entries, until the log is made); ignored",
        text: "how many transactions the log of `debug=audit` keeps", more: ""
    }
    Background background {
        form: Words(&["0", "inline", "1"]), default: "1", when: Live,
        refusal: "bad value (0, inline or 1); ignored",
        text: "who looks after a heap of more than 16 MiB: releases memory, and prepares hugepages",
        more: "Dense memory is moved onto hugepages, and in slow growth the thread clears hugepages ahead of requests. \
               `0`: nothing does. `inline`: requests, once a second. `1`: also a thread of the library, in programs \
               that have threads, much free memory, or a large heap and a child made by fork."
    }
    Caches caches {
        form: Words(&["auto", "thread", "cpu"]), default: "auto", when: Live,
        refusal: "bad value (auto, thread or cpu); ignored",
        text: "which caches of free objects threads use",
        more: "`auto`: the first thread and busy others have their own cache, up to four for each processor, or \
               sixteen where that is more; other threads share the per-CPU caches, by restartable sequences. \
               `thread`: every thread has its own. `cpu`: per-CPU caches only. Without restartable sequences (glibc \
               before 2.35, valgrind) every thread has its own; `cache_mode` in the statistics reports that."
    }
    Debug debug {
        form: Checks(&["none", "audit", "redzone", "poison", "verify", "guard", "unmap", "leak", "mismatch", "all"]),
        default: "none", when: Live,
        refusal: "cannot be set: there is no memory for the heap or for the log; ignored",
        text: "what the debugging kit checks",
        more: "Commas separate checks: `debug=audit,redzone`. Targets stand behind a colon, with `+` between them: \
               `debug=all:64+large+my-cache`. See [debugging.md](debugging.md)."
    }
    DebugFile debug_file {
        form: Path, default: "", when: Live,
        refusal: "bad value (a path of at most 511 bytes); ignored",
        text: "appends the debugging kit's reports to the file, too",
        more: "`%p` stands for the process id. The file is made by the first report."
    }
    GuardSample guard_sample {
        form: Count(&["auto"], 0, 1 << 40), default: "auto", when: Live,
        refusal: "bad value (0 for none, auto, or N for one object in N, up to 1099511627776); ignored",
        text: "puts one allocation in N on its own pages, as under `debug=guard,unmap,audit`; 0 for none",
        more: "`auto` is one in 20000 of those of up to 32 KiB, as far as they take at most 0.3 percent of the time."
    }
    HardLimit hard_limit {
        form: Limit(&["none", "auto"]), default: "none", when: Live,
        refusal: "bad value (none, auto, bytes such as 512M, or a percentage such as 80%); ignored",
        text: "the most memory; a request beyond it gets `ENOMEM`, after free memory was released",
        more: "`auto` is `none`."
    }
    Hardened hardened {
        form: Words(&["0", "1"]), default: "0", when: Start,
        refusal: "bad value (0 or 1, before the first request: set it in the environment; nothing is hardened by it); ignored",
        text: "makes freed memory wait, clears it, and hands objects out in random order",
        more: "See [SECURITY.md](../SECURITY.md)."
    }
    MemoryLimit memory_limit {
        form: Amount(&["cgroup", "auto", "none"], LIMIT_LEAST), default: "cgroup", when: Live,
        refusal: "bad value (cgroup, auto, none, or bytes such as 512M); ignored",
        text: "what the soft limit follows and percentages refer to",
        more: "`cgroup` and `auto`: the tightest limit of the process's control groups (version 1 or 2), read when \
               the heap has grown beyond 16 MiB and then every ten seconds. Percentages refer to the machine's memory \
               where there is no limit."
    }
    NameMappings name_mappings {
        form: Words(&["0", "1"]), default: "0", when: Live,
        refusal: "bad value (0 or 1); ignored",
        text: "names the library's mappings, as `/proc/PID/maps` and `smaps` show them: `[anon:craton: heap]` and others",
        more: "For mappings made from then on, by a system call each, two of them at the start. Off again once the system \
               refuses a name, as Linux before 5.17 does, and each kernel without `CONFIG_ANON_VMA_NAME`, such as \
               Debian's: `craton get PID name_mappings` then shows `0`."
    }
    PageHeap page_heap {
        form: Words(&["temeraire", "frames"]), default: "temeraire", when: Start,
        refusal: "bad value (temeraire or frames, before the first request: set it in the environment); ignored",
        text: "what places spans of up to 1 MiB: TEMERAIRE's filler, or LLFree's page frames",
        more: "With frames the heap has up to 1 TiB. `craton replay --heap frames` compares both on a recorded trace."
    }
    Pressure pressure {
        form: Percent, default: "10", when: Live,
        refusal: "bad value (0 to 100 percent); ignored",
        text: "releases all free memory when tasks waited for memory in more than this part of ten seconds; 0 for never",
        more: "Read from `/proc/pressure/memory` and the control group's `memory.pressure`. At most 256 MiB each \
               five seconds."
    }
    Profile profile {
        form: Amount(&["auto", "off"], 1), default: "auto", when: Live,
        refusal: "bad value (auto, off, or bytes above 0, such as 64K); ignored",
        text: "how many allocated bytes pass between two samples of the heap profile",
        more: "`auto` is 512 KiB, and more while samples would take more than 0.25 percent of the time. `craton profile` \
               shows the profile. See [profile.md](profile.md)."
    }
    ProfileEvery profile_every {
        form: Count(&["off"], 1, 31_536_000), default: "off", when: Live,
        refusal: "bad value (off, or 1 to 31536000 seconds); ignored",
        text: "after how many seconds the file of `profile_file` is written again",
        more: "At the first sample after them: a process that allocates nothing writes nothing. With `%n` in its path \
               each is a new file."
    }
    ProfileFile profile_file {
        form: Path, default: "", when: Live,
        refusal: "bad value (a path of at most 511 bytes); ignored",
        text: "writes the heap profile into the file at exit",
        more: "`%p` stands for the process id, `%n` for the file's number. `craton profile FILE` shows it."
    }
    ProfileGrowth profile_growth {
        form: Amount(&["off"], 1), default: "off", when: Live,
        refusal: "bad value (off, or bytes above 0, such as 64M); ignored",
        text: "at how many more live bytes the file of `profile_file` is written again",
        more: "Counted from the live bytes at the last file that growth wrote."
    }
    Quarantine quarantine {
        form: Bytes(1 << 40), default: "16777216", when: Live,
        refusal: "bad value (0 to 1T bytes, such as 64M); ignored",
        text: "how much freed memory waits under `debug` before it is reused", more: ""
    }
    ReleaseRate release_rate {
        form: Amount(&["auto"], 0), default: "auto", when: Live,
        refusal: "bad value (auto, or bytes, such as 512K); ignored",
        text: "how much memory the background work releases in a second; 0 for none",
        more: "Free hugepages beyond 16 MiB go at once, unless demand swings within 5 s. Free pages between objects go \
               once the highest demand of the last 5 s, and a 32nd of it, does not want them. `auto`: a quarter of \
               them a second, at least 64 MiB, so that all are gone 10 s after they were freed."
    }
    SoftLimit soft_limit {
        form: Limit(&["none", "auto"]), default: "auto", when: Live,
        refusal: "bad value (none, auto, bytes such as 512M, or a percentage such as 80%); ignored",
        text: "from how much memory in use on free memory is released",
        more: "As much as needed. If that is not enough, threads empty their caches, and the program's callback runs \
               (`craton_set_limit_callback`). `auto`: 90 % of `memory_limit`."
    }
    Stats stats {
        form: Words(&["0", "1"]), default: "0", when: Live,
        refusal: "bad value (0 or 1); ignored",
        text: "prints statistics on standard error at exit", more: ""
    }
    StatsDir stats_dir {
        form: Path, default: "", when: Before("the library is loaded"),
        refusal: "bad value (a path of at most 511 bytes, before the program starts: set it in the environment); ignored",
        text: "keeps the statistics in a file of this folder while the process runs",
        more: "So they outlive a process that is killed. A process that ends by `exit` removes its file. See [live.md](live.md)."
    }
    StatsFile stats_file {
        form: Path, default: "", when: Live,
        refusal: "bad value (a path of at most 511 bytes); ignored",
        text: "appends one line of JSON to the file at exit",
        more: "A Unix socket gets the line, and the process goes on when the listener has closed its end, within 5 seconds: it can still be read."
    }
    Thp thp {
        form: Words(&["auto", "always", "never"]), default: "auto", when: Live,
        refusal: "bad value (auto, always or never); ignored",
        text: "where the heap asks for transparent hugepages",
        more: "`auto`: in a heap of more than 16 MiB, under small objects before their first touch, and under larger \
               ones once earlier ones of their order of size were seen to be written nearly everywhere; what fills later \
               is moved by the background work. When clearing one took 10 ms none are asked for during the next second, then \
               two, up to 64. `always`: everywhere, so that one byte written can cost 2 MiB. `never`: \
               nowhere. The same holds on a system that gives hugepages unasked."
    }
    ThreadCache thread_cache {
        form: Bytes(u64::MAX), default: "2097152", when: Live,
        refusal: "bad value (bytes, such as 512K); ignored",
        text: "how much freed memory a thread keeps in its cache", more: ""
    }
    Trace trace {
        form: Path, default: "", when: Live,
        refusal: "bad value (a path of at most 511 bytes); ignored",
        text: "records the requests to the page heap into the file",
        more: "`%p` stands for the process id. See [trace.md](trace.md)."
    }
    TraceEvents trace_events {
        form: Count(&[], 1, u64::MAX), default: "16000000", when: Live,
        refusal: "bad value (a number above 0); ignored",
        text: "how many events a trace has at most; later ones are only counted", more: ""
    }
}
