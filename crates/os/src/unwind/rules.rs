//! Rules: one word that says how the frame at an address is undone.
//!
//! **What.** [`of`] knows the rule of an address that was met before; else it asks the module's tables ([`super::cfi`]).
//!
//! **State.** A rule, from the lowest bit on; what does not fit is as if nothing were known.
//! ```text
//! kind 3 | where bp is 2 | plus 7 (words) | offset of the CFA 24 (bytes, signed) | offset of bp 28 (bytes, signed) = 64
//! ```

use super::cfi::{Cfa, Row, Saved};
use super::table::Table;
use super::{cfi, module};

static RULES: Table<8192> = Table::new();

/// How a frame is undone; see [`Row`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Rule(u64);

/// Kinds of rules. 0 is an entry of the table that is empty.
const SP: u64 = 1;
const BP: u64 = 2;
const AT_SP: u64 = 3;
const AT_BP: u64 = 4;
const PLT: u64 = 5;
/// One of [`UNKNOWN`], [`SIGNAL`], [`OUTERMOST`].
const OTHER: u64 = 6;

const SAME: u64 = 0;
const AT_CFA: u64 = 1;
const AT_FRAME: u64 = 2;

const UNKNOWN: Rule = Rule(OTHER);
const SIGNAL: Rule = Rule(OTHER | 1 << 3);
const OUTERMOST: Rule = Rule(OTHER | 2 << 3);

/// A rule, taken apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// As the tables say.
    Known(Row),
    /// No table says anything.
    Unknown,
}

/// The rule of the instruction that the byte at this address belongs to.
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
    let row = module::find(address).and_then(|module| cfi::row(module, address));
    let rule = row.and_then(Rule::new).unwrap_or(UNKNOWN);
    RULES.put(address as u64, rule.0);
    rule
}

/// Forgets all rules.
pub(super) fn forget() {
    RULES.clear();
}

impl Rule {
    /// `None` for offsets that do not fit.
    pub(super) fn new(row: Row) -> Option<Self> {
        let (cfa, bp) = match row {
            Row::Signal => return Some(SIGNAL),
            Row::Outermost => return Some(OUTERMOST),
            Row::Frame { cfa, bp } => (cfa, bp),
        };
        let (kind, offset, plus) = match cfa {
            Cfa::Sp(offset) => (SP, offset, 0),
            Cfa::Bp(offset) => (BP, offset, 0),
            Cfa::AtSp { offset, plus } => (AT_SP, offset, plus),
            Cfa::AtBp { offset, plus } => (AT_BP, offset, plus),
            Cfa::Plt { from } => (PLT, from, 0),
        };
        let (place, of_bp) = match bp {
            Saved::Same => (SAME, 0),
            Saved::AtCfa(offset) => (AT_CFA, offset),
            Saved::AtBp(offset) => (AT_FRAME, offset),
        };
        let fits = |n: i64, bits: u32| (n << (64 - bits) >> (64 - bits)) == n;
        if !fits(offset, 24) || !fits(of_bp, 28) || plus % 8 != 0 || !(0..128 * 8).contains(&plus) {
            return None;
        }
        let (offset, of_bp) = (offset as u64 & 0xff_ffff, of_bp as u64 & 0xfff_ffff);
        Some(Self(kind | place << 3 | (plus as u64 / 8) << 5 | offset << 12 | of_bp << 36))
    }

    #[inline]
    pub(super) fn step(self) -> Step {
        let offset = (self.0 << 28) as i64 >> 40;
        let plus = (self.0 >> 5 & 127) as i64 * 8;
        let cfa = match self.0 & 7 {
            SP => Cfa::Sp(offset),
            BP => Cfa::Bp(offset),
            AT_SP => Cfa::AtSp { offset, plus },
            AT_BP => Cfa::AtBp { offset, plus },
            PLT => Cfa::Plt { from: offset },
            _ => {
                return match self {
                    SIGNAL => Step::Known(Row::Signal),
                    OUTERMOST => Step::Known(Row::Outermost),
                    _ => Step::Unknown,
                };
            }
        };
        let of_bp = self.0 as i64 >> 36;
        let bp = match self.0 >> 3 & 3 {
            AT_CFA => Saved::AtCfa(of_bp),
            AT_FRAME => Saved::AtBp(of_bp),
            _ => Saved::Same,
        };
        Step::Known(Row::Frame { cfa, bp })
    }
}
