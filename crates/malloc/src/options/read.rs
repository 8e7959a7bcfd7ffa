//! What the options are set to.

use super::{KEYS, STATS, STATS_FILE};
use crate::background::{self, Mode};
use crate::front::{CACHES_FOR, CachesFor, HEAP, THREAD_CACHE_BYTES, set_up};
use crate::page_heap;
use crate::text::Text;
use crate::trace;
use crate::{debug, limits};
use core::ffi::CStr;
use core::sync::atomic::Ordering::Relaxed;
use craton_pages::HugeBacking;

/// Bytes of a key, its closing 0 included, at most.
const NAME_MAX: usize = 24;

/// The keys as C strings.
static NAMES: [[u8; NAME_MAX]; KEYS.len()] = {
    let mut names = [[0; NAME_MAX]; KEYS.len()];
    let mut i = 0;
    while i < KEYS.len() {
        let mut j = 0;
        while j < KEYS[i].len() {
            names[i][j] = KEYS[i][j];
            j += 1;
        }
        assert!(j < NAME_MAX);
        i += 1;
    }
    names
};

/// Key of the `i`-th option, by the alphabet; `None` behind the last.
pub fn name(i: usize) -> Option<&'static CStr> {
    NAMES.get(i).and_then(|name| CStr::from_bytes_until_nul(name).ok())
}

/// Writes what an option is set to, in the form in which it is set; `false` when there is no such key.
pub fn get(key: &[u8], into: &mut Text<'_>) -> bool {
    match key {
        b"audit_log" => into.number(debug::KIT.log_entries()),
        b"debug" => return debug::show(into),
        b"guard_sample" => into.number(debug::KIT.sample()),
        b"quarantine" => into.number(debug::KIT.quarantine() as u64),
        b"background" => match background::mode() {
            Mode::Off => into.text("0"),
            Mode::Inline => into.text("inline"),
            Mode::Thread => into.text("1"),
        },
        b"caches" => into.text(match CACHES_FOR.load(Relaxed) {
            mode if mode == CachesFor::Threads as u8 => "thread",
            mode if mode == CachesFor::Processors as u8 => "cpu",
            _ => "auto",
        }),
        b"hard_limit" | b"memory_limit" | b"pressure" | b"soft_limit" => return limits::show_option(key, into),
        b"page_heap" => into.text(page_heap::name()),
        b"release_rate" => into.number(background::RATE.load(Relaxed)),
        b"stats" => into.number(STATS.load(Relaxed).into()),
        b"stats_file" => {
            let file = STATS_FILE.lock();
            into.bytes(&file.0[..file.1])
        }
        b"thp" => {
            // Before the heap has its floor, it does not know of the default.
            let backing = if set_up() { HEAP.pages().backing() } else { HugeBacking::AUTO };
            into.text(match backing {
                HugeBacking::ALWAYS => "always",
                HugeBacking::NEVER => "never",
                _ => "auto",
            })
        }
        b"thread_cache" => into.number(THREAD_CACHE_BYTES.load(Relaxed) as u64),
        b"trace" => {
            let path = trace::PATH.lock();
            into.bytes(&path.0[..path.1])
        }
        b"trace_events" => into.number(trace::bound()),
        _ => return false,
    };
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::set;

    #[test]
    fn every_option_that_is_listed_can_be_read_and_set_to_what_it_is() {
        let mut i = 0;
        while let Some(key) = name(i) {
            assert_eq!(key.to_bytes(), KEYS[i]);
            let mut buffer = [0; 600];
            let mut text = Text::new(&mut buffer);
            assert!(get(KEYS[i], &mut text), "{key:?}");
            let len = text.end();
            assert!(set(KEYS[i], &buffer[..len]), "{key:?} to {:?}", buffer[..len].escape_ascii());
            i += 1;
        }
        assert_eq!(i, KEYS.len());
        assert!(!get(b"no_such_option", &mut Text::new(&mut [])));
    }
}
