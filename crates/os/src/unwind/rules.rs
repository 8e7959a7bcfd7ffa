//! Rules: one word that says how to undo the frame at an address.
//!
//! From the lowest bit on; signed offsets in words. A rule that does not fit is unknown.
//! ```text
//! kind 3 | place of bp 2 | place of bx 2 | plus 7 | offset of the CFA 22 | offset of bp 14 | offset of bx 14 = 64
//! ```

use super::cfi::{Cfa, Row, Saved};
use super::known::Known;
use super::table::Table;
use super::{cfi, module};

static RULES: Table<8192> = Table::new();
static KNOWN: Known = Known::new();

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Rule(u64);

/// 0 is an empty entry.
const SP: u64 = 1;
const BP: u64 = 2;
const AT_SP: u64 = 3;
const AT_BP: u64 = 4;
const BX: u64 = 5;
const PLT: u64 = 6;
const OTHER: u64 = 7;

const WORD: i64 = 8;

const SAME: u64 = 0;
const AT_CFA: u64 = 1;
const AT_FRAME: u64 = 2;

const UNKNOWN: Rule = Rule(OTHER);
const SIGNAL: Rule = Rule(OTHER | 1 << 3);
const OUTERMOST: Rule = Rule(OTHER | 2 << 3);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    Known(Row),
    Unknown,
}

/// Of the instruction that holds this byte.
#[inline]
pub(super) fn of(address: usize) -> Rule {
    match RULES.get(address as u64) {
        0 => find(address),
        known => Rule(known),
    }
}

#[cold]
#[inline(never)]
fn find(address: usize) -> Rule {
    let module = module::find(address);
    if module.is_some_and(|module| KNOWN.record(module)) {
        super::forget();
    }
    let row = module.and_then(|module| cfi::row(module, address));
    let rule = row.and_then(Rule::new).unwrap_or(UNKNOWN);
    RULES.put(address as u64, rule.0);
    rule
}

pub(super) fn forget() {
    RULES.clear();
}

impl Rule {
    /// `None`: an offset does not fit.
    pub(super) fn new(row: Row) -> Option<Self> {
        let (cfa, bp, bx) = match row {
            Row::Signal => return Some(SIGNAL),
            Row::Outermost => return Some(OUTERMOST),
            Row::Frame { cfa, bp, bx } => (cfa, bp, bx),
        };
        let (kind, offset, plus) = match cfa {
            Cfa::Sp(offset) => (SP, offset, 0),
            Cfa::Bp(offset) => (BP, offset, 0),
            Cfa::Bx(offset) => (BX, offset, 0),
            Cfa::AtSp { offset, plus } => (AT_SP, offset, plus),
            Cfa::AtBp { offset, plus } => (AT_BP, offset, plus),
            Cfa::Plt { from } => (PLT, from * WORD, 0),
        };
        let saved = |saved: Saved| match saved {
            Saved::Same => (SAME, 0),
            Saved::AtCfa(offset) => (AT_CFA, offset),
            Saved::AtBp(offset) => (AT_FRAME, offset),
        };
        let words = |bytes: i64, bits: u32| {
            let words = bytes / WORD;
            let fits = bytes % WORD == 0 && words << (64 - bits) >> (64 - bits) == words;
            fits.then_some(words as u64 & ((1 << bits) - 1))
        };
        let ((bp_place, bp), (bx_place, bx)) = (saved(bp), saved(bx));
        let plus = words(plus, 8).filter(|n| *n < 128)?;
        let places = kind | bp_place << 3 | bx_place << 5 | plus << 7;
        Some(Self(places | words(offset, 22)? << 14 | words(bp, 14)? << 36 | words(bx, 14)? << 50))
    }

    #[inline(always)]
    pub(super) fn plain(self) -> Option<Plain> {
        // The places' higher bits stand for AT_FRAME.
        let others = (AT_FRAME << 3) | (AT_FRAME << 5);
        (self.0 & 7 <= BP && self.0 & others == 0).then_some(Plain(self.0))
    }

    pub(super) fn step(self) -> Step {
        let offset = Plain(self.0).cfa() as i64;
        let plus = (self.0 >> 7 & 127) as i64 * WORD;
        let cfa = match self.0 & 7 {
            SP => Cfa::Sp(offset),
            BP => Cfa::Bp(offset),
            AT_SP => Cfa::AtSp { offset, plus },
            AT_BP => Cfa::AtBp { offset, plus },
            BX => Cfa::Bx(offset),
            PLT => Cfa::Plt { from: offset / WORD },
            _ => {
                return match self {
                    SIGNAL => Step::Known(Row::Signal),
                    OUTERMOST => Step::Known(Row::Outermost),
                    _ => Step::Unknown,
                };
            }
        };
        let saved = |place: u64, offset: i64| match place & 3 {
            AT_CFA => Saved::AtCfa(offset),
            AT_FRAME => Saved::AtBp(offset),
            _ => Saved::Same,
        };
        let bp = saved(self.0 >> 3, Plain(self.0).bp() as i64);
        let bx = saved(self.0 >> 5, Plain(self.0).bx() as i64);
        Step::Known(Row::Frame { cfa, bp, bx })
    }
}

/// The CFA is at an offset from the stack or frame pointer, registers unchanged or near it. Byte
/// offsets, as wrapping words.
#[derive(Clone, Copy)]
pub(super) struct Plain(u64);

impl Plain {
    #[inline(always)]
    pub(super) fn is_by_sp(self) -> bool {
        self.0 & 7 == SP
    }

    #[inline(always)]
    pub(super) fn cfa(self) -> usize {
        ((self.0 << 28) as i64 >> 42 << 3) as usize
    }

    #[inline(always)]
    pub(super) fn saves_bp(self) -> bool {
        self.0 >> 3 & 1 != 0
    }

    #[inline(always)]
    pub(super) fn bp(self) -> usize {
        ((self.0 << 14) as i64 >> 50 << 3) as usize
    }

    #[inline(always)]
    pub(super) fn saves_bx(self) -> bool {
        self.0 >> 5 & 1 != 0
    }

    #[inline(always)]
    pub(super) fn bx(self) -> usize {
        (self.0 as i64 >> 50 << 3) as usize
    }
}
