//! What is mapped in the process.

use crate::small_file::{Lines, PathText};

/// A mapping.
#[derive(Clone, Copy, Debug)]
pub struct Mapping<'a> {
    /// First byte.
    pub start: usize,
    /// Behind the last byte.
    pub end: usize,
    /// May be read.
    pub readable: bool,
    /// May be written.
    pub writable: bool,
    /// The file, or what the kernel calls it (`[stack]`, `[vvar]`); empty for memory without a name.
    pub name: &'a [u8],
}

/// Tells of each mapping, by address; `false` when the system does not say, or not of all.
pub fn each(mut tell: impl FnMut(Mapping<'_>)) -> bool {
    let Some(mut lines) = PathText::new(b"/proc/self/maps").and_then(|path| Lines::open(&path).ok()) else {
        return false;
    };
    while let Some(line) = lines.next_line() {
        if let Some(mapping) = parse(line) {
            tell(mapping);
        }
    }
    lines.outcome().is_ok()
}

fn parse(line: &[u8]) -> Option<Mapping<'_>> {
    let mut fields = line.splitn(6, |b| *b == b' ');
    let mut range = fields.next()?.split(|b| *b == b'-');
    let (start, end) = (hex(range.next()?)?, hex(range.next()?)?);
    let rights = fields.next()?;
    let name = fields.nth(3).unwrap_or_default().trim_ascii();
    Some(Mapping { start, end, readable: rights.first() == Some(&b'r'), writable: rights.get(1) == Some(&b'w'), name })
}

fn hex(text: &[u8]) -> Option<usize> {
    text.iter().try_fold(0usize, |n, b| Some(n.checked_mul(16)? + (*b as char).to_digit(16)? as usize))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_stack_is_among_what_is_mapped() {
        let local = 0u8;
        let at = &raw const local as usize;
        let mut found = 0;
        assert!(each(|m| found += usize::from(m.start <= at && at < m.end && m.readable && m.writable)));
        assert_eq!(found, 1);
    }

    #[test]
    fn a_line_has_range_rights_and_name() {
        let m = parse(b"7f0000001000-7f0000003000 r--p 00001000 08:01 42                 /usr/lib/a b.so").unwrap();
        assert_eq!((m.start, m.end, m.readable, m.writable), (0x7f00_0000_1000, 0x7f00_0000_3000, true, false));
        assert_eq!(m.name, b"/usr/lib/a b.so");
        assert_eq!(parse(b"1000-2000 rw-p 00000000 00:00 0 ").unwrap().name, b"");
        assert!(parse(b"").is_none() && parse(b"xyz rw-p").is_none());
    }
}
