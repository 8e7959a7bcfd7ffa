//! Call frame information: how to undo the frame at an address.
//!
//! **From.** DWARF 5 §6.4 and the Linux Standard Base's `.eh_frame`, for frame pointer, return
//! address and RBX (the dynamic linker's). Expressions: a word beside a register (realigned stacks,
//! signal frames), and the linkage table's.
//! **Failure.** `None`: unknown or corrupt tables; nothing outside of the module is read.
//! **Unsafe.** Makes the reader of a module's memory.

use super::module::Module;
use super::reader::{OMITTED, Reader};

/// DWARF's numbers on x86-64.
const RBX: u64 = 3;
const RBP: u64 = 6;
const RSP: u64 = 7;
const RETURN_ADDRESS: u64 = 16;

/// The caller's stack pointer after the return. Offsets in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cfa {
    /// Above the stack pointer.
    Sp(i64),
    /// Above the frame pointer.
    Bp(i64),
    /// Above RBX.
    Bx(i64),
    /// `plus` above the word at `offset` from the stack pointer.
    AtSp { offset: i64, plus: i64 },
    /// From the frame pointer.
    AtBp { offset: i64, plus: i64 },
    /// 8 above the stack pointer, 16 from byte `from` of each 16 on.
    Plt { from: i64 },
}

/// Offsets in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Saved {
    /// In the register, or lost.
    Same,
    AtCfa(i64),
    AtBp(i64),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Row {
    /// The return address is below the CFA.
    Frame {
        cfa: Cfa,
        bp: Saved,
        bx: Saved,
    },
    Signal,
    Outermost,
}

struct Common {
    program: Reader,
    code_factor: u64,
    data_factor: i64,
    pointers: u8,
    is_sized: bool,
    is_signal: bool,
}

pub(super) fn row(module: Module, address: usize) -> Option<Row> {
    // SAFETY: the module's code runs, so it is loaded; its frames lie in it.
    let header = unsafe { Reader::new(module.frames, module.end) }.moved(module.start, module.frames)?;
    let mut entry = header.moved(module.start, find_entry(header, address)?)?;
    let len = entry.u32()?;
    // The end, or an entry of more than 4 GiB.
    if len == 0 || len == u32::MAX {
        return None;
    }
    let mut entry = entry.part(len as usize)?;
    let at = entry.at();
    let common = common(header.moved(module.start, at.checked_sub(entry.u32()? as usize)?)?)?;
    let first = entry.pointer(common.pointers, 0)?;
    let bytes = entry.value(common.pointers)?;
    if address.wrapping_sub(first) >= bytes {
        return None;
    }
    if common.is_sized {
        let augmentation = entry.unsigned()?;
        entry.skip(augmentation as usize)?;
    }
    if common.is_signal {
        return Some(Row::Signal);
    }
    let mut state = State::START;
    run(common.program, &common, &mut state, None)?;
    let mut frame = state;
    frame.initial = Some(&state);
    run(entry, &common, &mut frame, Some((first, address)))?;
    frame.row()
}

/// The last that starts before the address.
fn find_entry(mut header: Reader, address: usize) -> Option<usize> {
    /// Version 1, offsets of 32 bits from the header's start.
    const SORTED: u8 = 0x3b;
    let start = header.at();
    let (version, to_frames, of_count, of_table) = (header.u8()?, header.u8()?, header.u8()?, header.u8()?);
    if version != 1 || of_table != SORTED || of_count == OMITTED {
        return None;
    }
    header.pointer(to_frames, start)?;
    let count = header.pointer(of_count, start)?;
    let table = header.part(count.checked_mul(8)?)?;
    let entry = |i: usize| -> Option<(usize, usize)> {
        let mut at = table;
        at.skip(i * 8)?;
        Some((at.pointer(SORTED, start)?, at.pointer(SORTED, start)?))
    };
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if entry(middle)?.0 <= address { low = middle + 1 } else { high = middle }
    }
    Some(entry(low.checked_sub(1)?)?.1)
}

fn common(mut at: Reader) -> Option<Common> {
    let len = at.u32()?;
    let mut at = at.part(len as usize)?;
    let (id, version) = (at.u32()?, at.u8()?);
    if id != 0 || !matches!(version, 1 | 3) {
        return None;
    }
    let mut letters = at.text()?;
    let code_factor = at.unsigned()?;
    let data_factor = at.signed()?;
    let register = if version == 1 { u64::from(at.u8()?) } else { at.unsigned()? };
    if register != RETURN_ADDRESS {
        return None;
    }
    let mut common = Common { program: at, code_factor, data_factor, pointers: 0, is_sized: false, is_signal: false };
    while !letters.is_at_end() {
        match letters.u8()? {
            b'z' => {
                let len = at.unsigned()?;
                let mut program = at;
                program.skip(len as usize)?;
                (common.program, common.is_sized) = (program, true);
            }
            b'R' => common.pointers = at.u8()?,
            b'P' => {
                let encoding = at.u8()?;
                at.value(encoding)?;
            }
            b'L' => at.skip(1)?,
            b'S' => common.is_signal = true,
            b'B' => {}
            _ => return None,
        }
    }
    common.is_sized.then_some(common)
}

#[derive(Clone, Copy)]
struct State<'a> {
    register: u64,
    offset: i64,
    expression: Option<Cfa>,
    bp: Kept,
    bx: Kept,
    return_address: Kept,
    initial: Option<&'a State<'a>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    Same,
    Undefined,
    AtCfa(i64),
    AtBp(i64),
    Otherwise,
}

const REMEMBERED: usize = 4;

/// `code`: where it begins, and the address to stop at; without it, runs all.
fn run(mut program: Reader, common: &Common, state: &mut State<'_>, code: Option<(usize, usize)>) -> Option<()> {
    let (mut at, address) = code.unwrap_or((0, usize::MAX));
    let mut remembered = [*state; REMEMBERED];
    let mut depth = 0;
    while !program.is_at_end() {
        let byte = program.u8()?;
        let low = u64::from(byte & 0x3f);
        let scaled = |n: i64| n.wrapping_mul(common.data_factor);
        let mut step = None;
        match byte {
            0x40..=0x7f => step = Some(low),
            0x80..=0xbf => state.set(low, Kept::AtCfa(scaled(program.unsigned()? as i64))),
            0xc0..=0xff => state.restore(low),
            0x00 => {}
            0x01 => {
                let to = program.pointer(common.pointers, 0)?;
                if to > address {
                    return Some(());
                }
                at = to;
            }
            0x02 => step = Some(u64::from(program.u8()?)),
            0x03 => step = Some(u64::from(program.u16()?)),
            0x04 => step = Some(u64::from(program.u32()?)),
            0x05 => state.set(program.unsigned()?, Kept::AtCfa(scaled(program.unsigned()? as i64))),
            0x06 => state.restore(program.unsigned()?),
            0x07 => state.set(program.unsigned()?, Kept::Undefined),
            0x08 => state.set(program.unsigned()?, Kept::Same),
            0x09 => {
                let (register, _in) = (program.unsigned()?, program.unsigned()?);
                state.set(register, Kept::Otherwise);
            }
            0x0a => {
                *remembered.get_mut(depth)? = *state;
                depth += 1;
            }
            0x0b => {
                depth = depth.checked_sub(1)?;
                *state = remembered[depth];
            }
            0x0c => state.set_cfa(program.unsigned()?, program.unsigned()? as i64),
            0x0d => state.set_cfa(program.unsigned()?, state.offset),
            0x0e => state.offset = program.unsigned()? as i64,
            0x0f => {
                let len = program.unsigned()? as usize;
                state.expression = Some(cfa_expression(program.part(len)?)?);
            }
            0x10 => {
                let register = program.unsigned()?;
                let len = program.unsigned()? as usize;
                state.set(register, kept_expression(program.part(len)?));
            }
            0x11 => state.set(program.unsigned()?, Kept::AtCfa(scaled(program.signed()?))),
            0x12 => state.set_cfa(program.unsigned()?, scaled(program.signed()?)),
            0x13 => state.offset = scaled(program.signed()?),
            0x14 => {
                let (register, _offset) = (program.unsigned()?, program.unsigned()?);
                state.set(register, Kept::Otherwise);
            }
            0x15 => {
                let (register, _offset) = (program.unsigned()?, program.signed()?);
                state.set(register, Kept::Otherwise);
            }
            0x16 => {
                let register = program.unsigned()?;
                let len = program.unsigned()? as usize;
                program.skip(len)?;
                state.set(register, Kept::Otherwise);
            }
            0x2e => drop(program.unsigned()?),
            0x2f => {
                let (register, offset) = (program.unsigned()?, program.unsigned()?);
                state.set(register, Kept::AtCfa(scaled(offset as i64).wrapping_neg()));
            }
            _ => return None,
        }
        if let Some(step) = step {
            at = at.checked_add(step.checked_mul(common.code_factor)? as usize)?;
            if at > address {
                return Some(());
            }
        }
    }
    Some(())
}

impl State<'_> {
    const START: Self = Self {
        register: u64::MAX,
        offset: 0,
        expression: None,
        bp: Kept::Same,
        bx: Kept::Same,
        return_address: Kept::Otherwise,
        initial: None,
    };

    fn set_cfa(&mut self, register: u64, offset: i64) {
        (self.register, self.offset, self.expression) = (register, offset, None);
    }

    fn set(&mut self, register: u64, kept: Kept) {
        match register {
            RBX => self.bx = kept,
            RBP => self.bp = kept,
            RETURN_ADDRESS => self.return_address = kept,
            _ => {}
        }
    }

    fn restore(&mut self, register: u64) {
        let initial = self.initial.unwrap_or(&State::START);
        match register {
            RBX => self.bx = initial.bx,
            RBP => self.bp = initial.bp,
            RETURN_ADDRESS => self.return_address = initial.return_address,
            _ => {}
        }
    }

    fn row(&self) -> Option<Row> {
        match self.return_address {
            Kept::Undefined => return Some(Row::Outermost),
            Kept::AtCfa(-8) => {}
            _ => return None,
        }
        let cfa = match (self.expression, self.register) {
            (Some(cfa), _) => cfa,
            (None, RSP) => Cfa::Sp(self.offset),
            (None, RBP) => Cfa::Bp(self.offset),
            (None, RBX) => Cfa::Bx(self.offset),
            _ => return None,
        };
        Some(Row::Frame { cfa, bp: self.bp.place(), bx: self.bx.place() })
    }
}

impl Kept {
    /// Untracked rules count as lost: few callers' frames depend on them.
    fn place(self) -> Saved {
        match self {
            Kept::AtCfa(offset) => Saved::AtCfa(offset),
            Kept::AtBp(offset) => Saved::AtBp(offset),
            Kept::Same | Kept::Undefined | Kept::Otherwise => Saved::Same,
        }
    }
}

const DEREF: u8 = 0x06;
const PLUS_UCONST: u8 = 0x23;
const BREG_RBP: u8 = 0x76;
const BREG_RSP: u8 = 0x77;

fn cfa_expression(mut e: Reader) -> Option<Cfa> {
    let (base, offset) = (e.u8()?, e.signed()?);
    match e.u8()? {
        DEREF => {
            let plus = if e.is_at_end() {
                0
            } else if e.u8()? == PLUS_UCONST {
                e.unsigned()? as i64
            } else {
                return None;
            };
            match base {
                _ if !e.is_at_end() => None,
                BREG_RBP => Some(Cfa::AtBp { offset, plus }),
                BREG_RSP => Some(Cfa::AtSp { offset, plus }),
                _ => None,
            }
        }
        // rsp + 8 + (((rip & 15) >= n) << 3)
        0x80 if base == BREG_RSP && offset == 8 => {
            let rest = [e.u8()?, e.u8()?, e.u8()?, e.u8()?, e.u8()?, e.u8()?, e.u8()?, e.u8()?];
            match rest {
                [0x00, 0x3f, 0x1a, n @ 0x30..=0x3f, 0x2a, 0x33, 0x24, 0x22] if e.is_at_end() => {
                    Some(Cfa::Plt { from: i64::from(n - 0x30) })
                }
                _ => None,
            }
        }
        _ => None,
    }
}

fn kept_expression(mut e: Reader) -> Kept {
    let base = e.u8();
    match (base, e.signed()) {
        (Some(BREG_RBP), Some(offset)) if e.is_at_end() => Kept::AtBp(offset),
        _ => Kept::Otherwise,
    }
}
