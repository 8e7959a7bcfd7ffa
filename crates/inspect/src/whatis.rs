//! Describes an address.

use crate::caches::Place;
use crate::heap::{Heap, Span};
use crate::kit::{Beside, Buffer, Who};
use crate::memory::Map;
use crate::names::Names;
use serde::{Serialize, Serializer};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct What {
    #[serde(serialize_with = "as_hex")]
    pub address: u64,
    /// `class`, `large`, `huge`, `cache`, `buffer` (of the debugging kit), `free-pages`, `kept` (a
    /// freed huge object), `apart`, `library`, `mapping` or `nothing`.
    pub kind: &'static str,
    /// `live`, `free`, `uncarved` (never handed out), or empty.
    pub state: &'static str,
    #[serde(serialize_with = "as_hex")]
    pub start: u64,
    pub bytes: u64,
    pub offset: u64,
    /// In a buffer: `inside`, `redzone`, `closed-page`. In a cache's free object: `array`, `depot`,
    /// `slab`.
    pub place: &'static str,
    /// Bytes before a buffer's start (negative), or behind the end.
    pub beyond: i64,
    pub cache: String,
    pub allocated: Option<Who>,
    pub freed: Option<Who>,
    pub heap: String,
    /// Empty for anonymous memory.
    pub mapping: String,
}

pub(crate) fn as_hex<S: Serializer>(address: &u64, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&format!("{address:#x}"))
}

impl What {
    fn of(address: u64, kind: &'static str, state: &'static str, start: u64, bytes: u64) -> Self {
        let offset = address.saturating_sub(start);
        Self { address, kind, state, start, bytes, offset, ..Self::default() }
    }
}

/// # Errors
/// The library's tables cannot be read.
pub fn whatis(heap: &Heap<'_>, at: u64) -> Result<What, String> {
    if let Some(page) = heap.page_of(at) {
        let what = in_heap(heap, at, page)?;
        return Ok(match heap.kit.under(what.start) {
            Some(buffer) if what.kind != "cache" => of_buffer(heap, at, buffer, buffer.beside(at)),
            _ => what,
        });
    }
    if let Some((buffer, beside)) = heap.kit.on_page(at) {
        return Ok(of_buffer(heap, at, buffer, beside));
    }
    if let Some((start, bytes)) = heap.huge.iter().find(|(start, bytes)| at >= *start && at - start < *bytes) {
        let what = What::of(at, "huge", "live", *start, *bytes);
        return Ok(heap.kit.under(*start).map_or(what, |buffer| of_buffer(heap, at, buffer, buffer.beside(at))));
    }
    if let Some((start, bytes)) = heap.kept.iter().find(|(start, bytes)| at >= *start && at - start < *bytes) {
        return Ok(What::of(at, "kept", "free", *start, *bytes));
    }
    let get = |name: &str| heap.table.get(name);
    let (apart, used) = (get("apart")?, heap.reader.word(get("apart.used")?)?);
    if at >= apart && at - apart < used.min(get("apart.bytes")?) {
        return Ok(What::of(at, "apart", "", apart, used));
    }
    let own = (heap.heap, heap.heap + get("heap.bytes")?);
    let mut all = std::iter::once(&own).chain(&heap.kit.own).chain(&heap.caches.own);
    if let Some((from, to)) = all.find(|(from, to)| (*from..*to).contains(&at)) {
        return Ok(What::of(at, "library", "", *from, to - from));
    }
    if at >= heap.map_at && at < heap.base {
        return Ok(What::of(at, "library", "", heap.map_at, heap.base - heap.map_at));
    }
    Ok(match heap.reader.memory.map_at(at) {
        Some(Map { start, end, path, .. }) => {
            What { mapping: path.clone(), ..What::of(at, "mapping", "", *start, end - start) }
        }
        None => What::of(at, "nothing", "", 0, 0),
    })
}

fn of_buffer(heap: &Heap<'_>, at: u64, buffer: &Buffer, beside: Beside) -> What {
    let names = Names::new(heap.reader.memory);
    let who = |event| heap.kit.who(&heap.reader, &names, event);
    What {
        place: match beside {
            Beside::Inside => "inside",
            Beside::Redzone => "redzone",
            Beside::ClosedPage => "closed-page",
        },
        beyond: buffer.beyond(at),
        cache: heap.caches.name_of(buffer.target.checked_sub(1)),
        allocated: who(buffer.allocated),
        freed: if buffer.is_live { None } else { who(buffer.freed) },
        ..What::of(at, "buffer", if buffer.is_live { "live" } else { "free" }, buffer.address, buffer.size)
    }
}

fn in_heap(heap: &Heap<'_>, at: u64, page: u64) -> Result<What, String> {
    let Some(span) = heap.span_of(page) else {
        return Ok(What::of(at, "free-pages", "free", heap.address(page), heap.page));
    };
    let start = heap.address(span.first());
    match span {
        Span::Large { pages, own, .. } => {
            let name = own_name(heap, *own)?;
            Ok(What { heap: name, ..What::of(at, "large", "live", start, pages * heap.page) })
        }
        Span::Cached { cache, slab, .. } => {
            let cache = &heap.caches.all[*cache];
            let slab = &cache.slabs[*slab];
            let Some(i) = cache.index_of(slab, at) else {
                return Ok(What { cache: cache.name.clone(), ..What::of(at, "cache", "", start, 0) });
            };
            let (state, place) = match heap.place_in_cache(cache, slab, i) {
                Place::Out => ("live", ""),
                Place::Array => ("free", "array"),
                Place::Depot => ("free", "depot"),
                Place::Built | Place::Raw => ("free", "slab"),
            };
            let object = cache.object(slab, i);
            let what = What::of(at, "cache", state, object, cache.size);
            // Behind the object are its mark and its link.
            let beyond = (what.offset + 1).saturating_sub(cache.size) as i64;
            Ok(What { cache: cache.name.clone(), place, beyond, ..what })
        }
        Span::Notes { cache, .. } => {
            Ok(What { cache: heap.caches.name_of(Some(*cache)), ..What::of(at, "cache", "", start, 0) })
        }
        Span::Slab { first, class, own } => {
            let g = heap.class(*class).unwrap_or_default();
            let place = (at - start) / g.object.max(1);
            let object = start + place * g.object;
            let state = match place {
                place if place >= g.capacity => "",
                place if place >= heap.record(*first).carved => "uncarved",
                _ if heap.is_out(object) => "live",
                _ => "free",
            };
            let name = own_name(heap, *own)?;
            Ok(What { heap: name, ..What::of(at, "class", state, object, g.object) })
        }
        Span::Morphed { first, entry, .. } => {
            let offset = at - start;
            let here = entry.old_objects().map(|(from, len, _)| (start + from, len));
            let across = (offset < entry.head).then(|| heap.old_across(*first)).flatten();
            let state = |object| if heap.is_out(object) { "live" } else { "free" };
            if let Some((from, len)) =
                across.into_iter().chain(here).find(|(from, len)| (*from..from + len).contains(&at))
            {
                return Ok(What::of(at, "class", state(from), from, len));
            }
            let size = heap.class(entry.to).map_or(0, |c| c.object);
            let place = entry.places().find(|from| (*from..from + size).contains(&offset));
            let of = |from| What::of(at, "class", state(start + from), start + from, size);
            Ok(place.map_or_else(|| What::of(at, "class", "uncarved", at, 0), of))
        }
    }
}

fn own_name(heap: &Heap<'_>, own: u32) -> Result<String, String> {
    let name = if own == 0 { String::new() } else { heap.own_name(own)? };
    Ok(if own > 0 && name.is_empty() { format!("number {}", own - 1) } else { name })
}

impl What {
    fn write_buffer(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let beyond = Bytes(self.beyond.unsigned_abs());
        match (self.place, self.beyond) {
            ("inside", _) => write!(f, "{} into", Bytes(self.offset))?,
            ("closed-page", ..0) => write!(f, "on a closed page, {beyond} before the start of")?,
            ("closed-page", _) => write!(f, "on a closed page, {} past the end of", self.beyond)?,
            (_, ..0) => write!(f, "{beyond} before the start of")?,
            _ => write!(f, "{} past the end of", self.beyond)?,
        }
        write!(f, " the buffer of {} at {:#x}", Bytes(self.bytes), self.start)?;
        if !self.cache.is_empty() {
            write!(f, " of the cache \"{}\"", self.cache)?;
        }
        write!(f, ": {}", if self.state == "live" { "live" } else { "freed" })?;
        let mut tell = |what: &str, who: &Option<Who>| match who {
            None => write!(f, "\n  {what} by an unknown stack: debug=audit records stacks"),
            Some(who) => write!(f, "\n  {what} {who}"),
        };
        tell("allocated", &self.allocated)?;
        if self.state == "live" { Ok(()) } else { tell("freed", &self.freed) }
    }
}

impl std::fmt::Display for Who {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (seconds, micros) = (self.time_ns / 1_000_000_000, self.time_ns / 1000 % 1_000_000);
        write!(f, "by thread {} at {seconds}.{micros:06} s", self.thread)?;
        if self.stack.is_empty() {
            write!(f, "; no stack was noted")?;
        }
        self.stack.iter().enumerate().try_for_each(|(i, frame)| write!(f, "\n    #{i} {frame}"))
    }
}

#[derive(Clone, Copy)]
struct Bytes(u64);

impl std::fmt::Display for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} byte{}", self.0, if self.0 == 1 { "" } else { "s" })
    }
}

impl std::fmt::Display for What {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { address, state, start, .. } = self;
        let (bytes, offset) = (Bytes(self.bytes), Bytes(self.offset));
        write!(f, "{address:#x}: ")?;
        let object = |f: &mut std::fmt::Formatter<'_>, kind: &str| {
            let state = match *state {
                "live" => "live",
                "free" => "free, it was handed out before",
                _ => "free, it was never handed out",
            };
            write!(f, "{offset} into the {kind} of {bytes} at {start:#x}: {state}")
        };
        match self.kind {
            "class" if state.is_empty() || self.bytes == 0 => write!(f, "a part of a slab that holds no object")?,
            "class" => object(f, "object")?,
            "large" => object(f, "large object")?,
            "huge" => object(f, "huge object")?,
            "kept" => write!(
                f,
                "{offset} into a huge object of {bytes} at {start:#x} that was freed and is kept for the next request"
            )?,
            "cache" if self.bytes == 0 => write!(f, "what the object cache \"{}\" notes of its objects", self.cache)?,
            "cache" => {
                match self.beyond {
                    0 => write!(f, "{offset} into")?,
                    beyond => write!(f, "{beyond} past the end of")?,
                }
                write!(f, " the object of {bytes} at {start:#x} of the cache \"{}\": ", self.cache)?;
                match self.place {
                    "" => write!(f, "live")?,
                    "array" => write!(f, "free, in a processor's array")?,
                    "depot" => write!(f, "free, in the depot")?,
                    _ => write!(f, "free, on its slab")?,
                }
            }
            "buffer" => self.write_buffer(f)?,
            "free-pages" => write!(f, "a page of the heap on which nothing is allocated")?,
            "apart" => write!(f, "memory for requests of signal handlers")?,
            "library" => write!(f, "memory of the library's own")?,
            "mapping" => {
                let name = if self.mapping.is_empty() { "anonymous memory" } else { &self.mapping };
                write!(f, "not of the heap: {offset} into {name}, {bytes} from {start:#x} on")?;
            }
            _ => write!(f, "nothing is mapped there")?,
        }
        if self.heap.is_empty() { Ok(()) } else { write!(f, "; of the heap \"{}\"", self.heap) }
    }
}
