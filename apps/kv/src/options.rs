//! The command line of `craton-kv`.

use clap::{Parser, ValueEnum};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Serves a persistent heap file over the Redis protocol.
///
/// Example: craton-kv --file /dev/shm/keys.heap --port 6379
#[derive(Parser, Debug)]
#[command(name = "craton-kv", version, disable_help_subcommand = true)]
pub struct Options {
    /// The heap file, or DAX device; a file that is not there is made
    #[arg(long, value_name = "PATH")]
    pub file: PathBuf,

    /// The address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub listen: IpAddr,

    /// The port to listen on; 0 takes a free one and prints it
    #[arg(long, value_name = "PORT", default_value_t = 6379)]
    pub port: u16,

    /// Threads that serve clients; 0: one for each processor
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = parse_threads)]
    pub threads: usize,

    /// On a disk: acknowledge writes at sync points, at least MS milliseconds apart, or `always`
    #[arg(long, value_name = "MS|always", value_parser = parse_sync)]
    pub sync: Option<Duration>,

    /// With --sync: bytes of log after which the heap has a sync point, with K, M, G or T
    #[arg(long, value_name = "SIZE", default_value = "16M", value_parser = |text: &str| parse_size(text, 0))]
    pub log: u64,

    /// With --sync: go on at the last sync point if the log of writes since then is lost or damaged
    #[arg(long, requires = "sync")]
    pub lose_log: bool,

    /// How a new heap keeps objects through a crash
    #[arg(long, value_name = "MODEL", value_enum, default_value_t = ModelName::Log)]
    pub model: ModelName,

    /// Bytes that the file may grow to, with K, M, G or T
    #[arg(long, value_name = "SIZE", default_value = "64G", value_parser = |text: &str| parse_size(text, 16 << 20))]
    pub most: u64,

    /// Whether cache lines are written back: as the medium needs it, always, or never
    #[arg(long, value_name = "HOW", value_enum, default_value_t = WriteBackName::Auto)]
    pub write_back: WriteBackName,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum ModelName {
    Log,
    Gc,
    Frames,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum WriteBackName {
    Auto,
    Flush,
    None,
}

fn parse_threads(text: &str) -> Result<usize, String> {
    const MOST: usize = 256;
    let threads = text.parse().ok().filter(|n| *n <= MOST);
    threads.ok_or_else(|| format!("give a number from 0 to {MOST}"))
}

fn parse_sync(text: &str) -> Result<Duration, String> {
    const MOST: u64 = 60_000;
    if text == "always" {
        return Ok(Duration::ZERO);
    }
    let ms = text.parse().ok().filter(|ms| *ms <= MOST);
    ms.map(Duration::from_millis).ok_or_else(|| format!("give milliseconds from 0 to {MOST}, or `always`"))
}

fn parse_size(text: &str, least: u64) -> Result<u64, String> {
    const PAGE: u64 = 4096;
    let (digits, unit) = match text.char_indices().last() {
        Some((at, letter)) if letter.is_ascii_alphabetic() => (&text[..at], letter.to_ascii_uppercase()),
        _ => (text, ' '),
    };
    let shift = match unit {
        ' ' => Some(0),
        'K' => Some(10),
        'M' => Some(20),
        'G' => Some(30),
        'T' => Some(40),
        _ => None,
    };
    let number = digits.parse::<u64>().ok();
    let bytes = number.zip(shift).and_then(|(number, shift)| number.checked_mul(1 << shift));
    match bytes {
        Some(bytes) if bytes >= least => Ok(bytes / PAGE * PAGE),
        Some(_) => Err(format!("give at least {}M", least >> 20)),
        None => Err("give a number of bytes, such as 4G".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_intervals_are_read() {
        assert_eq!(parse_size("16M", 16 << 20), Ok(16 << 20));
        assert_eq!(parse_size("1t", 0), Ok(1 << 40));
        assert_eq!(parse_size("20000001", 16 << 20), Ok(20_000_001 / 4096 * 4096));
        for wrong in ["", "M", "1X", "-1", "1.5G", "99999999999T", "15M", "Ä"] {
            assert!(parse_size(wrong, 16 << 20).is_err(), "{wrong}");
        }
        assert_eq!(parse_sync("always"), Ok(Duration::ZERO));
        assert_eq!(parse_sync("20"), Ok(Duration::from_millis(20)));
        assert!(parse_sync("-1").is_err() && parse_sync("never").is_err());
        assert!(parse_threads("257").is_err());
    }
}
