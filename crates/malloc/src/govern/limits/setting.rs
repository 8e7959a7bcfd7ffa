//! An amount of memory: `none` · `auto` · bytes, with a unit for powers of 1024 · a percentage. As
//! a word: 0 for `auto` and unset, the highest number for none, percentages below.

use crate::observe::text::Text;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use craton_tables::amount::{decimal, size};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Setting {
    Auto,
    None,
    /// At least 1.
    Bytes(u64),
    /// 1 to 100.
    Percent(u8),
}

pub(crate) struct Kept(AtomicU64);

const NONE: u64 = u64::MAX;
const PERCENT: u64 = NONE - 128;

impl Kept {
    pub(crate) const fn auto() -> Self {
        Self(AtomicU64::new(0))
    }

    pub(crate) fn get(&self) -> Setting {
        match self.0.load(Relaxed) {
            0 => Setting::Auto,
            NONE => Setting::None,
            word @ PERCENT.. => Setting::Percent((word - PERCENT) as u8),
            bytes => Setting::Bytes(bytes),
        }
    }

    pub(crate) fn set(&self, setting: Setting) {
        let word = match setting {
            Setting::Auto => 0,
            Setting::None => NONE,
            Setting::Percent(p) => PERCENT + u64::from(p),
            Setting::Bytes(bytes) => bytes.clamp(1, PERCENT - 1),
        };
        self.0.store(word, Relaxed);
    }
}

impl Setting {
    /// `None` if malformed. Zero bytes mean none.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        match text {
            b"auto" => Some(Self::Auto),
            b"none" => Some(Self::None),
            [digits @ .., b'%'] => match decimal(digits)? {
                percent @ 1..=100 => Some(Self::Percent(percent as u8)),
                _ => None,
            },
            _ => size(text).filter(|bytes| *bytes > 0).map(Self::Bytes),
        }
    }

    pub(crate) fn show<'a, 'b>(self, into: &'a mut Text<'b>) -> &'a mut Text<'b> {
        match self {
            Self::Auto => into.text("auto"),
            Self::None => into.text("none"),
            Self::Bytes(bytes) => into.number(bytes),
            Self::Percent(percent) => into.number(percent.into()).text("%"),
        }
    }

    /// Percentages are of `whole`.
    pub(crate) fn bytes(self, whole: impl FnOnce() -> Option<u64>, auto: Option<u64>) -> Option<u64> {
        match self {
            Self::Auto => auto,
            Self::None => None,
            Self::Bytes(bytes) => Some(bytes),
            Self::Percent(p) => whole().map(|whole| part(whole, p)),
        }
    }
}

/// At least 1.
pub(crate) fn part(whole: u64, percent: u8) -> u64 {
    ((u128::from(whole) * u128::from(percent) / 100) as u64).max(1)
}

#[cfg(test)]
mod tests;
