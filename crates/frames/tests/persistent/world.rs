use crate::common::{Array, Arrays, array};
use craton_base::atomic::{AtomicU32, AtomicU64, Ordering};
use craton_frames::{Geometry, Media, Metadata, PAGE_WORDS, Sizes};
use craton_sim::{LINE_WORDS, Line, Lines};
use std::cell::RefCell;

pub struct World {
    pub page: Array<AtomicU64>,
    pub arrays: Arrays,
}

/// Records stores to page, rows and children.
pub struct Watch<'a> {
    world: &'a World,
    state: RefCell<State>,
}

struct State {
    lines: Lines,
    /// After each store, flush and fence.
    moments: Vec<Lines>,
}

impl World {
    pub fn new<G: Geometry>(frames: usize, processors: usize) -> Self {
        Self { page: array(PAGE_WORDS), arrays: Arrays::new(Sizes::of::<G>(frames, processors)) }
    }

    /// Only `image` persists.
    pub fn of<G: Geometry>(frames: usize, processors: usize, image: &[Line]) -> Self {
        let world = Self::new::<G>(frames, processors);
        let mut words = image.iter().flatten().copied();
        world.page[..LINE_WORDS].iter().zip(&mut words).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
        let rows = &world.arrays.rows;
        rows.iter().zip(&mut words).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
        for (pair, value) in world.arrays.children.chunks(2).zip(&mut words) {
            for (half, word) in pair.iter().enumerate() {
                word.store((value >> (32 * half)) as u32, Ordering::Relaxed);
            }
        }
        world.arrays.trees.iter().for_each(|tree| tree.store(0xaaaa, Ordering::Relaxed));
        world.arrays.index.iter().for_each(|word| word.store(0x5555_5555_5555_5555, Ordering::Relaxed));
        world
    }

    pub fn metadata(&self) -> Metadata<'_> {
        self.arrays.metadata()
    }

    fn line(&self, line: usize) -> Line {
        let Arrays { rows, children, .. } = &self.arrays;
        let row_lines = rows.len() / LINE_WORDS;
        let child = |at: usize| children.get(at).map_or(0, |word| u64::from(word.load(Ordering::Relaxed)));
        core::array::from_fn(|word| match line {
            0 => self.page[word].load(Ordering::Relaxed),
            _ if line <= row_lines => rows[(line - 1) * LINE_WORDS + word].load(Ordering::Relaxed),
            _ => {
                let at = 2 * ((line - 1 - row_lines) * LINE_WORDS + word);
                child(at) | child(at + 1) << 32
            }
        })
    }

    pub fn lines(&self) -> Vec<Line> {
        let Arrays { rows, children, .. } = &self.arrays;
        let count = 1 + rows.len() / LINE_WORDS + children.len().div_ceil(2 * LINE_WORDS);
        (0..count).map(|line| self.line(line)).collect()
    }

    fn line_of<W>(&self, word: &W) -> usize {
        let address = std::ptr::from_ref(word).addr();
        let Arrays { rows, children, .. } = &self.arrays;
        let within = |start: usize, bytes: usize| (start..start + bytes).contains(&address).then(|| address - start);
        let line = |bytes| bytes / (8 * LINE_WORDS);
        if let Some(at) = within(self.page.as_ptr().addr(), 8 * LINE_WORDS) {
            line(at)
        } else if let Some(at) = within(rows.as_ptr().addr(), 8 * rows.len()) {
            1 + line(at)
        } else if let Some(at) = within(children.as_ptr().addr(), size_of::<AtomicU32>() * children.len()) {
            1 + rows.len() / LINE_WORDS + line(at)
        } else {
            panic!("{address:#x} is not in the page, the rows or the children")
        }
    }
}

impl<'a> Watch<'a> {
    pub fn new(world: &'a World) -> Self {
        Self::with(world, Lines::new(world.lines()))
    }

    /// `lines` may not be durable.
    pub fn with(world: &'a World, lines: Lines) -> Self {
        assert_eq!(lines.seen(), world.lines());
        Self { world, state: RefCell::new(State { lines, moments: Vec::new() }) }
    }

    /// Since the last call; the present one last.
    pub fn moments(&self) -> Vec<Lines> {
        let mut state = self.state.borrow_mut();
        let mut moments = std::mem::take(&mut state.moments);
        moments.push(state.lines.clone());
        moments
    }

    fn record(&self, event: impl FnOnce(&mut Lines)) {
        let State { lines, moments } = &mut *self.state.borrow_mut();
        event(lines);
        moments.push(lines.clone());
    }
}

impl Media for Watch<'_> {
    fn changed<W>(&self, word: &W) {
        let line = self.world.line_of(word);
        self.record(|lines| lines.store(line, self.world.line(line)));
    }

    fn flush<W>(&self, word: &W) {
        let line = self.world.line_of(word);
        self.record(|lines| lines.flush(line));
    }

    fn fence(&self) {
        assert_eq!(self.state.borrow().lines.seen(), self.world.lines(), "a store was not reported");
        self.record(Lines::fence);
    }
}
