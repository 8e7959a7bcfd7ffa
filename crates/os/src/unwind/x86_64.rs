//! The walk from frame to frame, on x86-64.
//!
//! **What.** In unknown code the frame pointer must lie above the stack pointer, below a return
//! address that follows a call; then only pages surely of this stack count ([`Stack::distrust`]).
//! **From.** Signal frames: `struct ucontext` (`arch/x86/include/uapi/asm/sigcontext.h`).
//! **Unsafe.** Reads registers by assembly, and code that the kernel says can be read.

use super::Registers;
use super::cfi::{Cfa, Row, Saved};
use super::module;
use super::rules::{self, Rule, Step};
use super::stack::{self, Stack};
use super::table::Table;
use core::arch::asm;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

pub(super) const SUPPORTED: bool = true;

const WORD: usize = size_of::<usize>();

/// From the handler's stack pointer after its return.
const SIGNAL_BP: usize = 120;
const SIGNAL_BX: usize = 128;
const SIGNAL_SP: usize = 160;
const SIGNAL_PC: usize = 168;

/// Of the function that inlines this.
#[inline(always)]
pub(super) fn here() -> Registers {
    let (pc, sp, bp, bx);
    // SAFETY: reads four registers.
    unsafe {
        asm!(
            "lea {pc}, [rip]",
            "mov {sp}, rsp",
            "mov {bp}, rbp",
            "mov {bx}, rbx",
            pc = out(reg) pc, sp = out(reg) sp, bp = out(reg) bp, bx = out(reg) bx,
            options(nomem, nostack, preserves_flags),
        );
    }
    Registers { pc, sp, bp, bx }
}

/// `outside`: without the library's leading frames.
#[inline(never)]
pub(super) fn walk(from: Registers, outside: bool, into: &mut [usize]) -> usize {
    let own = if outside { own_code() } else { (0, 0) };
    let mut frame = Frame::at(from);
    let mut count = 0;
    let mut skipping = outside;
    while count < into.len() {
        let Some(address) = frame.undo() else { break };
        skipping = skipping && (own.0..own.1).contains(&address);
        if !skipping {
            into[count] = address;
            count += 1;
        }
    }
    count
}

/// If only the C library, the linker and we lie below.
#[inline(never)]
pub(super) fn after_main(from: Registers) -> Option<usize> {
    /// It only calls `main`'s caller.
    const FIRST: usize = 64;
    // SAFETY: no preconditions.
    let [entry, linker] = [libc::AT_ENTRY, libc::AT_BASE].map(|what| unsafe { libc::getauxval(what) as usize });
    let own = own_code();
    let libraries = [module::find(libc::exit as *const () as usize), module::find(linker)];
    let mut frame = Frame::at(from);
    loop {
        let address = frame.undo()?;
        if (entry..entry + FIRST).contains(&address) {
            return Some(frame.registers.sp);
        }
        let is_system = libraries.iter().flatten().any(|m| (m.start..m.end).contains(&address));
        if !is_system && !(own.0..own.1).contains(&address) {
            return None;
        }
    }
}

pub(super) fn forget() {
    rules::forget();
    stack::forget();
    CALLS.clear();
}

/// 1 and 1: part of the program.
fn own_code() -> (usize, usize) {
    static START: AtomicUsize = AtomicUsize::new(0);
    static END: AtomicUsize = AtomicUsize::new(0);
    let (start, end) = (START.load(Relaxed), END.load(Relaxed));
    if start != 0 && end != 0 {
        return (start, end);
    }
    // SAFETY: no preconditions.
    let entry = unsafe { libc::getauxval(libc::AT_ENTRY) as usize };
    let own = module::find(own_code as *const () as usize).filter(|m| !(m.start..m.end).contains(&entry));
    let (start, end) = own.map_or((1, 1), |m| (m.start, m.end));
    START.store(start, Relaxed);
    END.store(end, Relaxed);
    (start, end)
}

/// By value: stays in registers.
#[derive(Clone, Copy)]
struct Frame {
    registers: Registers,
    lookup: usize,
    stack: Stack,
}

impl Frame {
    #[inline(always)]
    fn at(registers: Registers) -> Self {
        Self { registers, lookup: registers.pc, stack: Stack::new() }
    }

    /// Returns the address one past the caller's current instruction.
    #[inline(always)]
    fn undo(&mut self) -> Option<usize> {
        let rule = rules::of(self.lookup);
        let Some(plain) = rule.plain() else {
            *self = self.undo_other(rule)?;
            return Some(self.lookup.wrapping_add(1));
        };
        let Registers { sp, bp, bx, .. } = self.registers;
        let cfa = if plain.is_by_sp() { sp } else { bp }.wrapping_add(plain.cfa());
        // Stacks grow downwards: a lower CFA is wrong, and could loop for ever.
        if cfa <= sp {
            return None;
        }
        let back = self.stack.word(cfa.wrapping_sub(WORD))?;
        let bp = if plain.saves_bp() { self.stack.word(cfa.wrapping_add(plain.bp()))? } else { bp };
        let bx = if plain.saves_bx() { self.stack.word(cfa.wrapping_add(plain.bx()))? } else { bx };
        *self = self.returned(Registers { pc: back, sp: cfa, bp, bx })?;
        Some(back)
    }

    #[cold]
    #[inline(never)]
    fn undo_other(mut self, rule: Rule) -> Option<Self> {
        let Registers { pc, sp, bp, bx } = self.registers;
        let (cfa, of_bp, of_bx) = match rule.step() {
            Step::Known(Row::Frame { cfa, bp, bx }) => (cfa, bp, bx),
            Step::Known(Row::Signal) => return self.interrupted(),
            Step::Known(Row::Outermost) => return None,
            Step::Unknown => return self.guessed(),
        };
        let above = |register: usize, offset: i64| register.wrapping_add(offset as usize);
        let cfa = match cfa {
            Cfa::Sp(offset) => above(sp, offset),
            Cfa::Bp(offset) => above(bp, offset),
            Cfa::Bx(offset) => above(bx, offset),
            Cfa::AtSp { offset, plus } => above(self.stack.word(above(sp, offset))?, plus),
            Cfa::AtBp { offset, plus } => above(self.stack.word(above(bp, offset))?, plus),
            Cfa::Plt { from } => above(sp, if pc as i64 & 15 >= from { 16 } else { 8 }),
        };
        if cfa <= sp {
            return None;
        }
        let back = self.stack.word(cfa.wrapping_sub(WORD))?;
        let mut saved = |saved: Saved, register: usize| match saved {
            Saved::Same => Some(register),
            Saved::AtCfa(offset) => self.stack.word(above(cfa, offset)),
            Saved::AtBp(offset) => self.stack.word(above(bp, offset)),
        };
        let (bp, bx) = (saved(of_bp, bp)?, saved(of_bx, bx)?);
        self.returned(Registers { pc: back, sp: cfa, bp, bx })
    }

    /// A thread's first function may have return address 0.
    #[inline(always)]
    fn returned(self, registers: Registers) -> Option<Self> {
        // The call may be its function's last instruction.
        (registers.pc != 0).then(|| Self { registers, lookup: registers.pc - 1, ..self })
    }

    fn interrupted(mut self) -> Option<Self> {
        let at = self.registers.sp;
        let mut word = |offset: usize| self.stack.word(at.wrapping_add(offset));
        let registers =
            Registers { pc: word(SIGNAL_PC)?, sp: word(SIGNAL_SP)?, bp: word(SIGNAL_BP)?, bx: word(SIGNAL_BX)? };
        Some(Self { registers, lookup: registers.pc, ..self })
    }

    /// After a jump to nowhere, by the return address just pushed.
    fn guessed(mut self) -> Option<Self> {
        self.stack.distrust();
        let Registers { pc, sp, bp, .. } = self.registers;
        let is_interrupted = self.lookup == pc;
        // Stored without a call, as at a context's start.
        if !is_interrupted && !is_behind_call(pc) {
            return None;
        }
        if is_interrupted
            && module::find(pc).is_none()
            && let Some(back) = self.stack.word(sp)
            && is_behind_call(back)
        {
            return self.returned(Registers { pc: back, sp: sp.wrapping_add(WORD), ..self.registers });
        }
        if bp < sp {
            return None;
        }
        let (caller_bp, back) = (self.stack.word(bp)?, self.stack.word(bp.wrapping_add(WORD))?);
        if !is_behind_call(back) {
            return None;
        }
        let sp = bp.wrapping_add(2 * WORD);
        self.returned(Registers { pc: back, sp, bp: caller_bp, ..self.registers })
    }
}

/// Addresses that follow a call.
static CALLS: Table<1024> = Table::new();

fn is_behind_call(address: usize) -> bool {
    if CALLS.get(address as u64) != 0 {
        return true;
    }
    let is = has_call_before(address);
    if is {
        CALLS.put(address as u64, 1);
    }
    is
}

fn has_call_before(address: usize) -> bool {
    const LONGEST: usize = 7;
    let Some(first) = address.checked_sub(LONGEST) else { return false };
    // Code may begin at a page: unreadable is no call.
    let (low, high) = (first & !7, (address - 1) & !7);
    let (has_low, has_high) = (stack::is_readable(low), stack::is_readable(high));
    let mut bytes = [0u8; LONGEST];
    for (i, byte) in bytes.iter_mut().enumerate() {
        let at = first + i;
        if if at < high { has_low } else { has_high } {
            // SAFETY: the kernel just read its word. If another thread unmaps the code meanwhile,
            // this thread would fault on return anyway.
            *byte = unsafe { (at as *const u8).read_volatile() };
        }
    }
    // call rel32, or through register or memory with 0, 1, 2, 4 or 5 operand bytes.
    let through = |back: usize| bytes[LONGEST - back] == 0xff && bytes[LONGEST - back + 1] & 0x38 == 0x10;
    bytes[LONGEST - 5] == 0xe8 || [2, 3, 4, 6, 7].into_iter().any(through)
}
