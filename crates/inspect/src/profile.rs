//! The heap profile of a process, of a core file, or in a file.
//!
//! **What.** [`Profile::of`] reads the library's table of sites (`craton_malloc::profile`) beside
//! the running process: a sequence number shows whether it changed meanwhile. Under `debug=audit`
//! each live buffer is added ([`exact`]). [`Profile::parse`] reads a file, [`Profile::bytes`]
//! writes one.
//!
//! **Failure.** A text with the reason and a remedy.

use crate::exact;
use crate::kit::Kit;
use crate::live::{Live, parse as parse_map};
use crate::memory::{Map, Memory, words};
use crate::reader::{Reader, u32_in, word_in};
use crate::table::Table;
use std::thread::sleep;
use std::time::Duration;

pub const MAGIC: [u8; 8] = *b"\0CRATONP";
const VERSION: u32 = 1;
const HEADER: usize = 208;
const SITE: usize = 104;
/// More are damage.
const MOST_SITES: u64 = 1 << 20;
const MOST_DEPTH: usize = 1 << 10;
/// Reads until no sample was taken meanwhile.
const TRIES: u32 = 50;

/// Estimates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub bytes: u64,
    pub objects: u64,
}

/// Allocations with one stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// Return addresses, innermost first.
    pub stack: Vec<u64>,
    pub live: Count,
    /// Live when all live objects were most.
    pub peak: Count,
    /// Since the start.
    pub total: Count,
    /// Freed soon after.
    pub short: Count,
    /// Free bytes that the live ones hold; 0 before [`crate::add_captive`].
    pub captive: Count,
}

#[derive(Clone, Debug, Default)]
pub struct Profile {
    pub name: String,
    pub pid: u64,
    /// Between two samples, at the end.
    pub interval: u64,
    pub samples: u64,
    pub live_samples: u64,
    /// For want of room.
    pub dropped: u64,
    /// Small objects are no samples, since the program frees them by their size alone. Unknown of a
    /// file.
    pub misses_small: bool,
    /// Monotonic, of the first and the last sample and of the high-water mark.
    pub began_ns: u64,
    pub last_ns: u64,
    pub peak_ns: u64,
    /// The longest life of objects that count as short-lived.
    pub short_ns: u64,
    pub live: Count,
    pub peak: Count,
    pub total: Count,
    pub short: Count,
    /// Of the live ones, those that `debug=audit` knows: no estimate. Their sites have no peak and
    /// no past.
    pub exact: Count,
    pub sites: Vec<Site>,
    pub maps: Vec<Map>,
}

fn count(bytes: &[u8], at: usize) -> Count {
    Count { bytes: word_in(bytes, at), objects: word_in(bytes, at + 8) }
}

/// Sizes of the parts by a header.
struct Shape {
    header: usize,
    site: usize,
    depth: usize,
    sites: usize,
    maps: usize,
}

impl Shape {
    fn of(header: &[u8], name: &str) -> Result<Self, String> {
        if !header.starts_with(&MAGIC) {
            return Err(format!("{name}: no heap profile; `craton run --profile=FILE -- CMD` writes one"));
        }
        let version = u32_in(header, 8);
        if header.len() >= 12 && version != VERSION {
            return Err(format!(
                "{name}: a heap profile of version {version}, and this program reads version {VERSION}; use the `craton` \
                 that came with that library"
            ));
        }
        let [header_bytes, site, depth] = [12, 16, 20].map(|at| u32_in(header, at) as usize);
        let (sites, maps) = (word_in(header, 24), word_in(header, 40));
        let is_right = header.len() >= HEADER
            && header_bytes >= HEADER
            && depth <= MOST_DEPTH
            && site >= SITE + 8 * depth
            && sites <= MOST_SITES
            && site < 1 << 20
            && header_bytes < 1 << 20;
        is_right
            .then_some(Self { header: header_bytes, site, depth, sites: sites as usize, maps: maps as usize })
            .ok_or_else(|| cut(name))
    }
}

fn misses_small(reader: &Reader<'_>, table: &Table) -> bool {
    table.get("profile.trusts").is_ok_and(|at| reader.byte(at) != 0)
}

fn cut(name: &str) -> String {
    format!("{name}: the heap profile is cut off or damaged; was the process killed while it wrote the file?")
}

impl Profile {
    /// Of a running process, which `debug=audit` stops for a moment: its buffers change else.
    ///
    /// # Errors
    /// No library with a profile there, or nothing to show yet.
    pub fn of_process(pid: u32) -> Result<Self, String> {
        let watched = Live::watch(pid)?;
        let reader = Reader::new(&watched);
        if !Kit::is_audited(&reader, &Table::find(&reader)?)? {
            return Self::of(&watched);
        }
        let mut tries = 0;
        loop {
            tries += 1;
            let stopped = Live::stop(pid)?;
            let (profile, is_calm) = Self::read(&stopped, &Table::find(&Reader::new(&stopped))?)?;
            if is_calm || tries == TRIES {
                return Ok(profile);
            }
            sleep(Duration::from_micros(500));
        }
    }

    /// # Errors
    /// No library with a profile there, or nothing to show yet.
    pub fn of(memory: &dyn Memory) -> Result<Self, String> {
        Self::by(memory, &Table::find(&Reader::new(memory))?)
    }

    pub(crate) fn by(memory: &dyn Memory, table: &Table) -> Result<Self, String> {
        Self::read(memory, table).map(|(profile, _)| profile)
    }

    /// Also whether no thread was changing it.
    fn read(memory: &dyn Memory, table: &Table) -> Result<(Self, bool), String> {
        let name = memory.name();
        let reader = Reader::new(memory);
        let mut profile = Self::sampled(memory, &reader, table)?;
        let mut is_calm = true;
        if Kit::is_audited(&reader, table)? {
            let exact = profile.get_or_insert_with(|| Self {
                name: name.clone(),
                pid: memory.pid().into(),
                maps: memory.maps().to_vec(),
                ..Self::default()
            });
            is_calm = exact::add(exact, &reader, table)?;
        }
        let profile = profile.ok_or_else(|| {
            let why = match misses_small(&reader, table) {
                true => "no sample yet: its Rust allocator frees small objects by size alone, which are not sampled",
                false => "no sample yet: it has allocated little, or runs with profile=off",
            };
            format!("{name}: {why}; `craton set PID profile=64K` takes more")
        })?;
        Ok((profile, is_calm))
    }

    /// `None` without a sample.
    pub(crate) fn sampled(memory: &dyn Memory, reader: &Reader<'_>, table: &Table) -> Result<Option<Self>, String> {
        let name = memory.name();
        let at = reader.word(table.get("profile")?)?;
        if at == 0 {
            return Ok(None);
        }
        let read = |at: u64, len: usize| {
            let mut bytes = vec![0; len];
            let got = memory.read(at, &mut bytes);
            (got == len).then_some(bytes).ok_or_else(|| format!("{name}: {len} bytes at {at:#x} cannot be read"))
        };
        let mut tries = 0;
        loop {
            tries += 1;
            let header = read(at, HEADER)?;
            let shape = Shape::of(&header, &name)?;
            let sites = read(at + shape.header as u64, shape.sites * shape.site)?;
            let sequence = |header: &[u8]| word_in(header, 32);
            let is_whole = sequence(&header).is_multiple_of(2) && sequence(&read(at, HEADER)?) == sequence(&header);
            if is_whole || tries == TRIES {
                let profile = Self::new(name, &header, &shape, &sites, memory.maps().to_vec());
                return Ok(Some(Self { misses_small: misses_small(reader, table), ..profile }));
            }
            sleep(Duration::from_micros(100));
        }
    }

    /// # Errors
    /// No profile, a cut one, or one of another version.
    pub fn parse(name: &str, bytes: &[u8]) -> Result<Self, String> {
        let shape = Shape::of(bytes, name)?;
        let maps_at = shape.header + shape.sites * shape.site;
        if bytes.len() != maps_at + shape.maps || shape.maps == 0 {
            return Err(cut(name));
        }
        let text = String::from_utf8_lossy(&bytes[maps_at..]);
        let maps = text.lines().filter_map(parse_map).collect();
        Ok(Self::new(name.to_owned(), bytes, &shape, &bytes[shape.header..maps_at], maps))
    }

    fn new(name: String, header: &[u8], shape: &Shape, sites: &[u8], maps: Vec<Map>) -> Self {
        let epoch = word_in(header, 120);
        let site = |site: &[u8]| {
            let frames = (word_in(site, 16) as usize).min(shape.depth);
            let (live, peak) = (count(site, 24), count(site, 40));
            Site {
                stack: words(&site[SITE..SITE + 8 * frames]).collect(),
                live,
                peak: if word_in(site, 8) == epoch { peak } else { live },
                total: count(site, 56),
                short: count(site, 72),
                captive: Count::default(),
            }
        };
        Self {
            name,
            pid: word_in(header, 48),
            interval: word_in(header, 56),
            samples: word_in(header, 64),
            live_samples: word_in(header, 72),
            dropped: word_in(header, 80),
            misses_small: false,
            began_ns: word_in(header, 88),
            last_ns: word_in(header, 96),
            peak_ns: word_in(header, 104),
            short_ns: word_in(header, 112),
            live: count(header, 128),
            peak: count(header, 144),
            total: count(header, 160),
            short: count(header, 176),
            exact: count(header, 192),
            sites: sites.chunks_exact(shape.site).map(site).collect(),
            maps,
        }
    }

    /// A file for [`Profile::parse`].
    pub fn bytes(&self) -> Vec<u8> {
        let flag = |has: bool, letter: char| if has { letter } else { '-' };
        let line = |map: &Map| {
            let access: String =
                [flag(map.readable, 'r'), flag(map.writable, 'w'), flag(map.executable, 'x'), 'p'].iter().collect();
            format!("{:x}-{:x} {access} {:08x} 00:00 0 {}\n", map.start, map.end, map.offset, map.path)
        };
        let maps: String = self.maps.iter().filter(|map| map.executable || map.is_file()).map(line).collect();
        let depth = self.sites.iter().map(|site| site.stack.len()).max().unwrap_or(0);
        let mut bytes = MAGIC.to_vec();
        for number in [VERSION, HEADER as u32, (SITE + 8 * depth) as u32, depth as u32] {
            bytes.extend(number.to_le_bytes());
        }
        let mut put = |words: &[u64]| words.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
        put(&[self.sites.len() as u64, 0, maps.len() as u64, self.pid, self.interval, self.samples]);
        put(&[self.live_samples, self.dropped, self.began_ns, self.last_ns, self.peak_ns, self.short_ns, 0]);
        for count in [self.live, self.peak, self.total, self.short, self.exact] {
            put(&[count.bytes, count.objects]);
        }
        for site in &self.sites {
            put(&[0, 0, site.stack.len() as u64]);
            for count in [site.live, site.peak, site.total, site.short] {
                put(&[count.bytes, count.objects]);
            }
            put(&[0, 0]);
            put(&site.stack);
            put(&vec![0; depth - site.stack.len()]);
        }
        bytes.extend(maps.as_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests;
