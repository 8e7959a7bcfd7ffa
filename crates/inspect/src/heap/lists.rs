//! Free lists. A link that leads to no free object is a write after free, and ends the list.

use super::{Heap, Span};

const LONGEST: u64 = 1 << 24;

fn written(at: u64) -> String {
    format!("first word is {at:#x} and should lead to another free one: it was written after it was freed")
}

impl Heap<'_> {
    /// Those without a mark.
    pub(super) fn find_free(&mut self) -> Result<(), String> {
        for i in 0..self.spans.len() {
            let (first, capacity, class) = match &self.spans[i] {
                Span::Large { .. } | Span::Cached { .. } | Span::Notes { .. } => continue,
                Span::Slab { first, class, .. } => (*first, self.class(*class).map_or(0, |c| c.capacity), Some(*class)),
                Span::Morphed { first, entry, .. } => (*first, entry.places().count() as u64, None),
            };
            self.follow_slab(i, first, capacity, class);
        }
        self.find_cached()
    }

    pub(super) fn find_cached(&mut self) -> Result<(), String> {
        self.find_in_threads()?;
        self.find_in_processors()?;
        self.find_between()
    }

    fn follow_slab(&mut self, span: usize, first: u64, capacity: u64, class: Option<u8>) {
        let record = self.record(first);
        let (start, expected) = (self.address(first), record.carved.saturating_sub(record.used));
        let (mut at, mut from, mut n) = (record.free, start, 0);
        while at != 0 && at != self.end && n <= capacity {
            if !self.is_place(&self.spans[span], at) {
                let what = match from == start {
                    true => {
                        format!("the slab's record begins its list of free objects with {at:#x}, which is none of it")
                    }
                    false => format!("a free object, of which the {}", written(at)),
                };
                return self.record_broken(from, "S1", what);
            }
            match class {
                Some(class) if self.reader.word(at + 8).is_ok_and(|word| self.is_mark(word, class, at)) => (),
                _ => self.add_free(at),
            }
            self.on_slabs += 1;
            (n, from) = (n + 1, at);
            match self.reader.word(at) {
                Ok(next) => at = next,
                Err(why) => return self.record_broken(from, "S1", why),
            }
        }
        if n != expected {
            let what = format!("the slab has {n} free objects on its list, and {expected} by its counts");
            self.record_broken(start, "S1", what);
        } else if n > 0 && start + record.last * self.shape.unit != from {
            let known = start + record.last * self.shape.unit;
            self.record_broken(
                start,
                "S5",
                format!("its last free object is {from:#x}, and the record knows {known:#x}"),
            );
        }
    }

    fn is_place(&self, span: &Span, at: u64) -> bool {
        let Some(offset) = at.checked_sub(self.address(span.first())) else { return false };
        match span {
            Span::Slab { first, class, .. } => {
                let object = self.class(*class).map_or(1, |c| c.object);
                offset.is_multiple_of(object) && offset / object < self.record(*first).carved
            }
            Span::Morphed { entry, .. } => entry.places().any(|place| place == offset),
            Span::Large { .. } | Span::Cached { .. } | Span::Notes { .. } => false,
        }
    }

    /// A cache may keep it across the slab's change of class.
    fn is_old(&self, span: &Span, at: u64, class: u8) -> bool {
        let Span::Morphed { first, entry, .. } = span else { return false };
        entry.old_objects().any(|(offset, _, old)| old == class && self.address(*first) + offset == at)
    }

    fn add_free(&mut self, at: u64) {
        if !self.is_marked(at) {
            self.unmarked.insert(at);
        }
    }

    fn follow(&mut self, mut at: u64, class: u8, most: u64, from: u64, holder: &str) {
        let (mut before, mut n) = (from, 0);
        while at != 0 && at != self.end && n < most {
            let here = self.page_of(at).and_then(|page| self.span_of(page)).filter(|span| {
                let on_place = match span {
                    Span::Slab { class: c, own: 0, .. } => *c == class,
                    Span::Morphed { entry, .. } => entry.to == class,
                    _ => false,
                };
                on_place && self.is_place(span, at) || self.is_old(span, at, class)
            });
            if here.is_none() {
                let size = self.class(class).map_or(0, |c| c.object);
                let what = match before == from {
                    true => format!(
                        "{holder} begins its list of the class of {size} with {at:#x}, which is no object of it"
                    ),
                    false => format!("a free object of {size} bytes, of which the {} ({holder} has it)", written(at)),
                };
                return self.record_broken(before, "T1", what);
            }
            self.add_free(at);
            self.in_caches += 1;
            self.count_cached(at, class);
            (before, n) = (at, n + 1);
            match self.reader.word(at) {
                Ok(next) => at = next,
                Err(why) => return self.record_broken(before, "T1", why),
            }
        }
        if at != self.end && most == LONGEST {
            self.record_broken(from, "T1", format!("{holder} has a list of free objects without an end"));
        }
    }

    fn count_cached(&mut self, at: u64, class: u8) {
        let span = self.page_of(at).and_then(|page| self.span_of(page));
        let is_new = span.is_some_and(|span| match span {
            Span::Morphed { entry, .. } => entry.to == class && self.is_place(span, at),
            _ => true,
        });
        let counts = if is_new { &mut self.cached } else { &mut self.old_cached };
        counts[usize::from(class)] += 1;
    }

    fn find_in_threads(&mut self) -> Result<(), String> {
        let get = |name: &str| self.table.get(name);
        let (lists, stride, head) = (get("thread.lists")?, get("thread.list.bytes")?, get("thread.list.head")?);
        let stages = get("thread.stages").ok();
        for (cache, taken) in self.thread_caches()? {
            // An unused cache's lists are stale.
            for class in 1..self.table.classes.len() as u64 {
                let at = cache + lists + class * stride + head;
                let first = self.reader.word(at)?;
                if taken && first != self.end {
                    self.follow(first, class as u8, LONGEST, at, &format!("the thread's cache at {cache:#x}"));
                }
            }
            if taken && let Some(stages) = stages {
                self.follow_stages(self.reader.word(cache + stages)?, cache)?;
            }
            if taken {
                self.follow_awaited(cache)?;
            }
        }
        Ok(())
    }

    /// Lists of classes that await a sample.
    fn follow_awaited(&mut self, cache: u64) -> Result<(), String> {
        let get = |name: &str| self.table.get(name);
        let (head, class) = (get("thread.list.head")?, get("thread.awaited.class")?);
        let (first, stride, count) =
            (get("thread.awaited")?, get("thread.awaited.bytes")?, get("thread.awaited.count")?);
        for at in (0..count).map(|n| cache + first + n * stride) {
            let class = u64::from(self.reader.u32(at + class)?);
            if class > 0 && class < self.table.classes.len() as u64 {
                let first = self.reader.word(at + head)?;
                self.follow(first, class as u8, LONGEST, at + head, &format!("the thread's cache at {cache:#x}"));
            }
        }
        Ok(())
    }

    /// Of a hardened heap: freed objects that wait, and those for requests.
    fn follow_stages(&mut self, stages: u64, cache: u64) -> Result<(), String> {
        if stages == 0 {
            return Ok(());
        }
        let get = |name: &str| self.table.get(name);
        let (stride, out, old) = (get("stage.bytes")?, get("stage.out")? + get("thread.list.head")?, get("stage.old")?);
        for class in 1..self.table.classes.len() as u64 {
            for at in [stages + class * stride + out, stages + class * stride + old] {
                let first = self.reader.word(at)?;
                self.follow(first, class as u8, LONGEST, at, &format!("the thread's cache at {cache:#x}"));
            }
        }
        Ok(())
    }

    /// `true`: a thread uses it.
    pub(crate) fn thread_caches(&self) -> Result<Vec<(u64, bool)>, String> {
        let get = |name: &str| self.table.get(name);
        let (next, taken) = (get("thread.next")?, get("thread.taken")?);
        let mut at = self.reader.word(get("thread.first")?)?;
        let mut all = Vec::new();
        while at != 0 && all.len() < 1 << 20 {
            all.push((at, self.reader.byte(at + taken) != 0));
            at = self.reader.word(at + next)?;
        }
        Ok(all)
    }

    /// Processors' caches.
    pub(crate) fn areas(&self) -> Result<Vec<u64>, String> {
        let get = |name: &str| self.table.get(name);
        let table = get("processors")? + get("processors.table")?;
        let words = self.reader.bytes(table, get("processors.most")? as usize * 8)?;
        Ok(crate::memory::words(&words).filter(|area| *area != 0).collect())
    }

    fn find_in_processors(&mut self) -> Result<(), String> {
        let count = self.table.get("area.count")?;
        for area in self.areas()? {
            for class in 1..self.table.classes.len() {
                let g = self.table.classes[class];
                let n = self.reader.u32(area + g.count_at + count)?;
                if u64::from(n) > 2 * g.batch {
                    self.record_broken(
                        area + g.count_at,
                        "T3",
                        format!("a processor's cache has {n} objects of {}", g.object),
                    );
                    continue;
                }
                for slot in 0..u64::from(n) {
                    let at = area + g.array_at + slot * 8;
                    let object = self.reader.word(at)?;
                    // An array has no links: lists of one.
                    self.follow(object, class as u8, 1, at, &format!("the processor's cache at {area:#x}"));
                }
            }
        }
        Ok(())
    }

    /// Of a hardened heap, in no thread's cache.
    fn find_waiting(&mut self) -> Result<(), String> {
        let get = |name: &str| self.table.get(name);
        let (shards, stride, waiting) = (get("heap.shards")?, get("shard.bytes")?, get("shard.waiting")?);
        let (class_bytes, first) = (get("waiting.class.bytes")?, get("waiting.class.places")?);
        let places = get("waiting.places")?;
        for shard in 0..self.shards {
            let rings = self.heap + shards + shard * stride + waiting;
            for class in 1..self.table.classes.len() as u64 {
                for place in 0..places {
                    let at = rings + (class - 1) * class_bytes + first + place * 8;
                    let object = self.reader.word(at)?;
                    self.follow(object, class as u8, 1, at, "a ring of objects that wait");
                }
            }
        }
        Ok(())
    }

    fn find_between(&mut self) -> Result<(), String> {
        let get = |name: &str| self.table.get(name);
        let (shards, stride, transfer) = (get("heap.shards")?, get("shard.bytes")?, get("shard.transfer")?);
        let (class_bytes, slots) = (get("transfer.class.bytes")?, get("transfer.class.slots")?);
        let later = get("later.first")?;
        let layout = self.heap + get("heap.layout")?;
        let is_hardened = get("layout.hardened").is_ok_and(|at| self.reader.byte(layout + at) != 0);
        for shard in 0..self.shards {
            for class in 1..self.table.classes.len() as u64 {
                for slot in 0..slots {
                    let at = self.heap + shards + shard * stride + transfer + (class - 1) * class_bytes + slot * 8;
                    let first = self.reader.word(at)?;
                    if first != 0 {
                        self.follow(first, class as u8, LONGEST, at, "a batch between threads");
                    }
                }
            }
        }
        if is_hardened {
            self.find_waiting()?;
        }
        let mut at = self.reader.word(later)?;
        while at != 0 && self.page_of(at).is_some() && self.unmarked.insert(at) {
            self.in_caches += 1;
            let class = match self.page_of(at).and_then(|page| self.span_of(page)) {
                Some(Span::Slab { class, own: 0, .. }) => usize::from(*class),
                _ => 0,
            };
            self.cached[class] += 1;
            at = self.reader.word(at)?;
        }
        Ok(())
    }
}
