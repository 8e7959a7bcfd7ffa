//! Values of options: what is allowed, and what to give instead.

use craton_tables::amount::size;
use std::time::Duration;

/// Bytes with a unit or none.
pub fn bytes(text: &str) -> Result<u64, String> {
    size(text.as_bytes()).ok_or_else(|| "give a size, such as 64M or 4G".to_owned())
}

/// An address, with or without `0x`.
pub fn address(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    u64::from_str_radix(digits, 16).map_err(|_| "give an address in hexadecimal, such as 0x7f12a4c01230".to_owned())
}

pub fn process(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "not a process id, such as 1234; `pgrep -a NAME` finds that of a program".to_owned())
}

pub fn count(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "give a whole number below 2^64, such as 100".to_owned())
}

/// More rounds than this are a typing error; their sum has to fit, too.
const MOST: usize = 1_000_000;

pub fn at_least<const LEAST: usize>(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n) if (LEAST..=MOST).contains(&n) => Ok(n),
        _ => Err(format!("give a whole number from {LEAST} to {MOST}")),
    }
}

pub fn seconds(text: &str) -> Result<Duration, String> {
    let duration = text.parse().ok().and_then(|s| Duration::try_from_secs_f64(s).ok());
    duration.filter(|d| !d.is_zero()).ok_or_else(|| "give a number of seconds above 0, such as 2.5".to_owned())
}
