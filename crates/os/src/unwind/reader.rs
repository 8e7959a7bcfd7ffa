//! A cursor over a module's memory: reads past its end are `None`.
//!
//! **From.** DWARF 5 §7.6 (LEB128); Linux Standard Base, "DWARF Extensions" (pointers).
//! **Unsafe.** Reads memory by address, as [`Reader::new`]'s caller vouches.

pub(super) const OMITTED: u8 = 0xff;

#[derive(Clone, Copy, Debug)]
pub(super) struct Reader {
    at: usize,
    end: usize,
}

impl Reader {
    /// # Safety
    /// The bytes up to `end` stay readable.
    pub(super) unsafe fn new(at: usize, end: usize) -> Self {
        Self { at, end }
    }

    /// With the same end; `None` outside of `start..end`.
    pub(super) fn moved(self, start: usize, to: usize) -> Option<Self> {
        (start <= to && to < self.end).then_some(Self { at: to, end: self.end })
    }

    pub(super) fn at(self) -> usize {
        self.at
    }

    pub(super) fn part(&mut self, len: usize) -> Option<Self> {
        let part = Self { at: self.at, end: self.at.checked_add(len)? };
        self.skip(len)?;
        Some(part)
    }

    pub(super) fn skip(&mut self, len: usize) -> Option<()> {
        let to = self.at.checked_add(len)?;
        (to <= self.end).then(|| self.at = to)
    }

    pub(super) fn is_at_end(self) -> bool {
        self.at >= self.end
    }

    fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let from = self.at as *const [u8; N];
        self.skip(N)?;
        // SAFETY: before the end, so readable by `new`'s contract.
        Some(unsafe { from.read() })
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.bytes::<1>().map(|b| b[0])
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.bytes().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.bytes().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.bytes().map(u64::from_le_bytes)
    }

    /// LEB128; bits beyond the 64th are dropped.
    pub(super) fn unsigned(&mut self) -> Option<u64> {
        let (mut value, mut shift) = (0u64, 0u32);
        loop {
            let byte = self.u8()?;
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            shift = shift.saturating_add(7);
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
    }

    pub(super) fn signed(&mut self) -> Option<i64> {
        let from = self.at;
        let value = self.unsigned()? as i64;
        let bits = 7 * (self.at - from) as u32;
        // The last byte's bit 6 is the sign.
        Some(if bits < 64 { value << (64 - bits) >> (64 - bits) } else { value })
    }

    pub(super) fn text(&mut self) -> Option<Self> {
        let start = *self;
        while self.u8()? != 0 {}
        Some(Self { at: start.at, end: self.at - 1 })
    }

    /// Relative to `data` where encoded so; `None`: unused encodings.
    pub(super) fn pointer(&mut self, encoding: u8, data: usize) -> Option<usize> {
        let at = self.at;
        let value = self.value(encoding)?;
        let base = match encoding & 0x70 {
            0x00 => 0,
            0x10 => at,
            0x30 => data,
            _ => return None,
        };
        // Bit 7: indirect, which only skipped personalities use.
        Some(base.wrapping_add(value))
    }

    pub(super) fn value(&mut self, encoding: u8) -> Option<usize> {
        Some(match encoding & 0x0f {
            0x00 | 0x04 | 0x0c => self.u64()? as usize,
            0x01 => self.unsigned()? as usize,
            0x02 => usize::from(self.u16()?),
            0x03 => self.u32()? as usize,
            0x09 => self.signed()? as usize,
            0x0a => self.u16()? as i16 as usize,
            0x0b => self.u32()? as i32 as usize,
            _ => return None,
        })
    }
}
