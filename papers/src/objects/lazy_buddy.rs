//! A buddy system that delays merging, as in SVr4 (Lee and Barkley, USENIX Summer 1989).
//!
//! A freed block stays *locally free* while its size is in demand; else it is *globally free* and
//! merges with its buddy. A size's slack is its blocks in use minus those locally free:
//! - lazy, 2 and more: the block becomes locally free;
//! - reclaiming, 1: the block becomes globally free;
//! - accelerated, 0: the block and a locally free one become globally free.
//!
//! Lists have locally free blocks first. Ours has one pool, SVr4 two.
//!
//! **Unsafe.** Trusts the argument of [`Store::put`].

use super::arena::{Arena, NONE};
use super::{LEAST, MOST, SIZES, Store, bytes_of, size_for};
use craton_base::PAGE_SIZE;

const CHUNK: usize = 1 << MOST;

#[derive(Debug)]
struct Size {
    first: usize,
    last: usize,
    active: usize,
    local: usize,
    global: usize,
    /// By place: globally free.
    bits: Vec<u64>,
}

#[derive(Debug)]
pub struct LazyBuddy {
    arena: Arena,
    sizes: Vec<Size>,
}

impl LazyBuddy {
    pub fn new(arena: Arena) -> Self {
        let bytes = arena.pages() * PAGE_SIZE;
        let size = |size| Size {
            first: NONE,
            last: NONE,
            active: 0,
            local: 0,
            global: 0,
            bits: vec![0; bytes.div_ceil(bytes_of(size) * 64)],
        };
        Self { sizes: (0..SIZES).map(size).collect(), arena }
    }

    #[cfg(test)]
    pub fn free_blocks(&self) -> (usize, usize) {
        self.sizes.iter().fold((0, 0), |(local, global), size| (local + size.local, global + size.global))
    }

    #[inline]
    fn is_global(&self, size: usize, at: usize) -> bool {
        let i = at / bytes_of(size);
        (self.sizes[size].bits[i / 64] >> (i % 64)) & 1 == 1
    }

    #[inline]
    fn flip(&mut self, size: usize, at: usize) {
        let i = at / bytes_of(size);
        self.sizes[size].bits[i / 64] ^= 1 << (i % 64);
    }

    fn push_first(&mut self, size: usize, at: usize) {
        let next = self.sizes[size].first;
        self.arena.set_word(at, next);
        self.arena.set_word(at + 8, NONE);
        match next {
            NONE => self.sizes[size].last = at,
            next => self.arena.set_word(next + 8, at),
        }
        self.sizes[size].first = at;
    }

    fn push_last(&mut self, size: usize, at: usize) {
        let prev = self.sizes[size].last;
        self.arena.set_word(at, NONE);
        self.arena.set_word(at + 8, prev);
        match prev {
            NONE => self.sizes[size].first = at,
            prev => self.arena.set_word(prev, at),
        }
        self.sizes[size].last = at;
    }

    fn unlink(&mut self, size: usize, at: usize) {
        let (next, prev) = (self.arena.word(at), self.arena.word(at + 8));
        match prev {
            NONE => self.sizes[size].first = next,
            prev => self.arena.set_word(prev, next),
        }
        match next {
            NONE => self.sizes[size].last = prev,
            next => self.arena.set_word(next + 8, prev),
        }
    }

    #[inline]
    fn take(&mut self, size: usize) -> Option<usize> {
        let at = self.sizes[size].first;
        if at == NONE {
            return self.split(size);
        }
        self.unlink(size, at);
        if self.is_global(size, at) {
            self.flip(size, at);
            self.sizes[size].global -= 1;
        } else {
            self.sizes[size].local -= 1;
        }
        Some(at)
    }

    #[cold]
    fn split(&mut self, size: usize) -> Option<usize> {
        if size + 1 == SIZES {
            return self.arena.get(CHUNK / PAGE_SIZE, CHUNK / PAGE_SIZE);
        }
        let at = self.take(size + 1)?;
        self.add_global(size, at + bytes_of(size));
        Some(at)
    }

    fn add_global(&mut self, size: usize, at: usize) {
        self.flip(size, at);
        self.sizes[size].global += 1;
        self.push_last(size, at);
    }

    /// On no list; merged as far as possible.
    fn merge(&mut self, mut size: usize, mut at: usize) {
        while size + 1 < SIZES {
            let buddy = at ^ bytes_of(size);
            if !self.is_global(size, buddy) {
                return self.add_global(size, at);
            }
            self.unlink(size, buddy);
            self.flip(size, buddy);
            self.sizes[size].global -= 1;
            at &= !bytes_of(size);
            size += 1;
        }
        self.arena.put(at, CHUNK / PAGE_SIZE);
    }

    #[cold]
    fn put_global(&mut self, size: usize, at: usize, accelerated: bool) {
        self.merge(size, at);
        let first = self.sizes[size].first;
        if accelerated && self.sizes[size].local > 0 {
            self.unlink(size, first);
            self.sizes[size].local -= 1;
            self.merge(size, first);
        }
    }
}

impl Store for LazyBuddy {
    #[inline]
    fn get(&mut self, bytes: usize) -> Option<*mut u8> {
        if bytes > CHUNK {
            let at = self.arena.get(bytes.div_ceil(PAGE_SIZE), 1)?;
            return Some(self.arena.pointer(at));
        }
        let size = size_for(bytes);
        let at = self.take(size)?;
        self.sizes[size].active += 1;
        Some(self.arena.pointer(at))
    }

    #[inline]
    unsafe fn put(&mut self, at: *mut u8, bytes: usize) {
        let at = self.arena.offset(at);
        if bytes > CHUNK {
            self.arena.put(at, bytes.div_ceil(PAGE_SIZE));
            return;
        }
        let size = size_for(bytes);
        let of = &mut self.sizes[size];
        let slack = of.active - of.local;
        of.active -= 1;
        if slack >= 2 {
            of.local += 1;
            self.push_first(size, at);
        } else {
            self.put_global(size, at, slack == 0);
        }
    }

    fn consumed(&self) -> usize {
        // With bits: two less one for each place of the smallest size.
        self.arena.consumed() + self.arena.consumed() / (1 << LEAST) * 2 / 8
    }

    fn check(&self) -> Result<(), String> {
        for (size, of) in self.sizes.iter().enumerate() {
            let (mut at, mut prev, mut local, mut global) = (of.first, NONE, 0, 0);
            while at != NONE {
                let is_global = self.is_global(size, at);
                if self.arena.word(at + 8) != prev || !at.is_multiple_of(bytes_of(size)) {
                    return Err(format!("the list of {} bytes is broken at {at:#x}", bytes_of(size)));
                }
                if !is_global && global > 0 {
                    return Err(format!("{at:#x} is locally free behind globally free ones"));
                }
                if is_global && size + 1 < SIZES && self.is_global(size, at ^ bytes_of(size)) {
                    return Err(format!("{at:#x} and its buddy of {} bytes are both globally free", bytes_of(size)));
                }
                if is_global {
                    global += 1
                } else {
                    local += 1
                }
                (prev, at) = (at, self.arena.word(at));
            }
            let bits: u32 = of.bits.iter().map(|word| word.count_ones()).sum();
            if (prev, local, global, bits as usize) != (of.last, of.local, of.global, global) {
                return Err(format!("{of:?}: {local} locally and {global} globally free, {bits} bits"));
            }
            if of.local > of.active {
                return Err(format!("{} locally free blocks, {} active", of.local, of.active));
            }
        }
        Ok(())
    }
}
