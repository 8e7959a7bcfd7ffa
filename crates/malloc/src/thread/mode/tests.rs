//! Every mode, with and without per-CPU caches.

use super::*;
use core::cell::Cell;
use core::ptr::without_provenance_mut;

fn own() -> *mut ThreadCache {
    without_provenance_mut(0x4000)
}

/// And whether the request was counted.
fn served(mode: ThreadMode, has_rseq: bool, earns: bool) -> (Server<u8>, bool) {
    let counted = Cell::new(false);
    let server = mode.server(
        || has_rseq.then_some(7),
        || {
            counted.set(true);
            earns
        },
    );
    (server, counted.get())
}

#[test]
fn the_word_says_the_mode() {
    for (cache, mode) in [
        (own(), ThreadMode::Own(own())),
        (tls::none(), ThreadMode::Fresh),
        (tls::visitor(), ThreadMode::PerCpu),
        (tls::gone(), ThreadMode::Ending),
        (tls::alone(), ThreadMode::Alone),
    ] {
        assert_eq!(ThreadMode::of(cache, false), mode);
    }
}

#[test]
fn a_handler_is_nested_unless_another_task_shares_the_words() {
    for (cache, per_cpu) in [(own(), false), (tls::none(), false), (tls::visitor(), true), (tls::gone(), true)] {
        assert_eq!(ThreadMode::of(cache, true), ThreadMode::Nested { per_cpu });
    }
    assert_eq!(ThreadMode::of(tls::alone(), true), ThreadMode::Alone);
}

#[test]
fn a_thread_with_a_cache_is_served_by_it_and_its_requests_are_not_counted() {
    for (has_rseq, earns) in [(false, false), (false, true), (true, false), (true, true)] {
        assert_eq!(served(ThreadMode::Own(own()), has_rseq, earns), (Server::Cache(own()), false));
        assert_eq!(served(ThreadMode::Alone, has_rseq, earns), (Server::Central, false));
    }
}

#[test]
fn a_first_request_brings_a_cache_or_the_question_whether_sequences_are_restarted() {
    assert_eq!(served(ThreadMode::Fresh, true, false), (Server::PerCpuIfRegistered(7), true));
    assert_eq!(served(ThreadMode::Fresh, true, true), (Server::NewCache, true));
    assert_eq!(served(ThreadMode::Fresh, false, false).0, Server::NewCache, "without per-CPU caches each has its own");
}

#[test]
fn a_thread_on_per_cpu_caches_stays_there_until_it_earns_a_cache() {
    assert_eq!(served(ThreadMode::PerCpu, true, false), (Server::PerCpu(7), true));
    assert_eq!(served(ThreadMode::PerCpu, true, true), (Server::NewCache, true));
    assert_eq!(served(ThreadMode::PerCpu, false, false).0, Server::NewCache);
}

#[test]
fn a_thread_that_ends_never_gets_a_cache_again() {
    for earns in [false, true] {
        assert_eq!(served(ThreadMode::Ending, true, earns), (Server::PerCpu(7), false));
        assert_eq!(served(ThreadMode::Ending, false, earns), (Server::Central, false));
    }
}

#[test]
fn a_handler_takes_no_lock() {
    for earns in [false, true] {
        assert_eq!(served(ThreadMode::Nested { per_cpu: true }, true, earns), (Server::PerCpu(7), false));
        for (per_cpu, has_rseq) in [(true, false), (false, true), (false, false)] {
            assert_eq!(served(ThreadMode::Nested { per_cpu }, has_rseq, earns), (Server::Apart, false));
        }
    }
}
