//! What lies at an address.
//!
//! **What.** The object around it, and whether it is out; or which part of the process else.
//!
//! **Not here.** Who asked for it: what the library notes of buffers under its debugging kit comes with the kit's own tables.

use crate::heap::{Heap, Span};
use crate::memory::Map;
use serde::{Serialize, Serializer};

/// What lies at an address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct What {
    /// The address.
    #[serde(serialize_with = "as_hex")]
    pub address: u64,
    /// What it is: `class`, `large`, `huge`, `free-pages`, `apart`, `library`, `mapping` or `nothing`.
    pub kind: &'static str,
    /// `live`, `free` or `uncarved` (never handed out yet) of an object; else empty.
    pub state: &'static str,
    /// Where the object or the mapping begins.
    #[serde(serialize_with = "as_hex")]
    pub start: u64,
    /// Its bytes.
    pub bytes: u64,
    /// Bytes between the start and the address.
    pub offset: u64,
    /// The heap of its own that it is of; empty for the process's.
    pub heap: String,
    /// The mapped file or its name; empty for anonymous memory.
    pub mapping: String,
}

/// An address as people write it.
pub(crate) fn as_hex<S: Serializer>(address: &u64, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&format!("{address:#x}"))
}

impl What {
    fn of(address: u64, kind: &'static str, state: &'static str, start: u64, bytes: u64) -> Self {
        let offset = address.saturating_sub(start);
        Self { address, kind, state, start, bytes, offset, ..Self::default() }
    }
}

/// Says what lies at an address.
///
/// # Errors
/// The library's tables cannot be read.
pub fn whatis(heap: &Heap<'_>, at: u64) -> Result<What, String> {
    if let Some(page) = heap.page_of(at) {
        return in_heap(heap, at, page);
    }
    if let Some((start, bytes)) = heap.huge.iter().find(|(start, bytes)| at >= *start && at - start < *bytes) {
        return Ok(What::of(at, "huge", "live", *start, *bytes));
    }
    let get = |name: &str| heap.table.get(name);
    let (apart, used) = (get("apart")?, heap.reader.word(get("apart.used")?)?);
    if at >= apart && at - apart < used.min(get("apart.bytes")?) {
        return Ok(What::of(at, "apart", "", apart, used));
    }
    let (own, bytes) = (heap.heap, get("heap.bytes")?);
    if at >= own && at - own < bytes {
        return Ok(What::of(at, "library", "", own, bytes));
    }
    let mapping = heap.reader.memory.maps().iter().find(|map| map.contains(at));
    if at >= heap.map_at && at < heap.base {
        return Ok(What::of(at, "library", "", heap.map_at, heap.base - heap.map_at));
    }
    Ok(match mapping {
        Some(Map { start, end, path, .. }) => {
            What { mapping: path.clone(), ..What::of(at, "mapping", "", *start, end - start) }
        }
        None => What::of(at, "nothing", "", 0, 0),
    })
}

fn in_heap(heap: &Heap<'_>, at: u64, page: u64) -> Result<What, String> {
    let Some(span) = heap.span_of(page) else {
        let start = heap.address(page);
        return Ok(What::of(at, "free-pages", "free", start, heap.page));
    };
    let start = heap.address(span.first());
    match span {
        Span::Large { pages, own, .. } => {
            let name = own_name(heap, *own)?;
            Ok(What { heap: name, ..What::of(at, "large", "live", start, pages * heap.page) })
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
        Span::Morphed { entry, .. } => {
            let offset = at - start;
            let old = entry.old_objects().find(|(from, len, _)| (*from..from + len).contains(&offset));
            if let Some((from, len, _)) = old {
                let state = if heap.is_out(start + from) { "live" } else { "free" };
                return Ok(What::of(at, "class", state, start + from, len));
            }
            let size = heap.class(entry.to).map_or(0, |c| c.object);
            Ok(match entry.places().find(|from| (*from..from + size).contains(&offset)) {
                Some(from) if heap.is_out(start + from) => What::of(at, "class", "live", start + from, size),
                Some(from) => What::of(at, "class", "free", start + from, size),
                None => What::of(at, "class", "uncarved", at, 0),
            })
        }
    }
}

fn own_name(heap: &Heap<'_>, own: u32) -> Result<String, String> {
    match own {
        0 => Ok(String::new()),
        own => {
            let name = heap.own_name(own)?;
            Ok(if name.is_empty() { format!("number {}", own - 1) } else { name })
        }
    }
}

impl std::fmt::Display for What {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { address, state, start, bytes, offset, .. } = self;
        write!(f, "{address:#x}: ")?;
        let object = |f: &mut std::fmt::Formatter<'_>, kind: &str| {
            let state = match *state {
                "live" => "live",
                "free" => "free, it was handed out before",
                _ => "free, it was never handed out",
            };
            write!(f, "{offset} bytes into the {kind} of {bytes} bytes at {start:#x}: {state}")
        };
        match self.kind {
            "class" if state.is_empty() || *bytes == 0 => write!(f, "a part of a slab that holds no object")?,
            "class" => object(f, "object")?,
            "large" => object(f, "large object")?,
            "huge" => object(f, "huge object")?,
            "free-pages" => write!(f, "a page of the heap on which nothing is allocated")?,
            "apart" => write!(f, "memory for requests of signal handlers")?,
            "library" => write!(f, "memory of the library's own")?,
            "mapping" => {
                let name = if self.mapping.is_empty() { "anonymous memory" } else { &self.mapping };
                write!(f, "not of the heap: {offset} bytes into {name}, {bytes} bytes from {start:#x} on")?;
            }
            _ => write!(f, "nothing is mapped there")?,
        }
        if self.heap.is_empty() { Ok(()) } else { write!(f, "; of the heap \"{}\"", self.heap) }
    }
}
