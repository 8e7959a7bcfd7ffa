//! Power-of-two segregated storage, as in 4.4BSD (McKusick and Karels, USENIX Summer 1988). More
//! than two pages are returned when freed; smaller memory never is.
//!
//! **Unsafe.** Trusts the argument of [`Store::put`].

use super::arena::{Arena, NONE};
use super::{MOST, SIZES, Store, bytes_of, size_for};
use craton_base::PAGE_SIZE;

#[derive(Debug)]
pub struct PowerOfTwo {
    arena: Arena,
    free: [usize; SIZES],
    /// By page: log2 of its size, or [`SIZES`] plus a run's length.
    usage: Vec<u32>,
    count: [usize; SIZES],
}

impl PowerOfTwo {
    pub fn new(arena: Arena) -> Self {
        Self { usage: vec![0; arena.pages()], arena, free: [NONE; SIZES], count: [0; SIZES] }
    }

    /// Of a page, or two.
    #[cold]
    fn fill(&mut self, list: usize) -> Option<usize> {
        let size = bytes_of(list);
        let pages = size.div_ceil(PAGE_SIZE);
        let at = self.arena.get(pages, 1)?;
        self.usage[at / PAGE_SIZE] = list as u32;
        for piece in (at..at + pages * PAGE_SIZE).step_by(size).rev() {
            self.arena.set_word(piece, self.free[list]);
            self.free[list] = piece;
        }
        self.count[list] += pages * PAGE_SIZE / size;
        Some(self.free[list])
    }

    #[cold]
    fn get_pages(&mut self, bytes: usize) -> Option<*mut u8> {
        let pages = bytes.div_ceil(PAGE_SIZE);
        let at = self.arena.get(pages, 1)?;
        self.usage[at / PAGE_SIZE] = (SIZES + pages) as u32;
        Some(self.arena.pointer(at))
    }
}

impl Store for PowerOfTwo {
    #[inline]
    fn get(&mut self, bytes: usize) -> Option<*mut u8> {
        if bytes > 1 << MOST {
            return self.get_pages(bytes);
        }
        let list = size_for(bytes);
        let mut at = self.free[list];
        if at == NONE {
            at = self.fill(list)?;
        }
        self.free[list] = self.arena.word(at);
        self.count[list] -= 1;
        Some(self.arena.pointer(at))
    }

    #[inline]
    unsafe fn put(&mut self, at: *mut u8, _: usize) {
        let at = self.arena.offset(at);
        let list = self.usage[at / PAGE_SIZE] as usize;
        if list >= SIZES {
            self.arena.put(at, list - SIZES);
            return;
        }
        self.arena.set_word(at, self.free[list]);
        self.free[list] = at;
        self.count[list] += 1;
    }

    fn consumed(&self) -> usize {
        let pages = self.arena.consumed() / PAGE_SIZE;
        self.arena.consumed() + pages * size_of::<u32>()
    }

    fn check(&self) -> Result<(), String> {
        let mut bytes = 0;
        for list in 0..SIZES {
            let (mut at, mut count) = (self.free[list], 0);
            while at != NONE {
                if !at.is_multiple_of(bytes_of(list).min(PAGE_SIZE)) || self.usage[at / PAGE_SIZE] != list as u32 {
                    return Err(format!("{at:#x} is on the list of {} bytes", bytes_of(list)));
                }
                count += 1;
                at = self.arena.word(at);
                if count > self.count[list] {
                    break;
                }
            }
            if count != self.count[list] {
                return Err(format!("{} free memories of {} bytes, not {count}", self.count[list], bytes_of(list)));
            }
            bytes += count * bytes_of(list);
        }
        if bytes > self.arena.consumed() { Err(format!("{bytes} bytes are free of fewer")) } else { Ok(()) }
    }
}
