//! `INFO`, `CONFIG GET`, `HELLO`.

use super::commands::{Context, is};
use super::reply::{array, bulk, error, integer};
use super::resp::Args;
use crate::store::Store;
use std::fmt::Write;
use std::sync::atomic::Ordering;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// All sections, or those named.
pub fn text<S: Store>(context: &Context<S>, args: Args<'_>) -> String {
    let Context { about, counters, .. } = context;
    let mut out = String::new();
    let wanted = |name: &str| {
        args.len() == 1
            || args.from(1).any(|arg| is(arg, name) || is(arg, "all") || is(arg, "everything") || is(arg, "default"))
    };
    let mut section = |name: &str, lines: &[(&str, String)]| {
        if wanted(name) {
            let _ = write!(out, "{}# {name}\r\n", if out.is_empty() { "" } else { "\r\n" });
            lines.iter().for_each(|(key, value)| _ = write!(out, "{key}:{value}\r\n"));
        }
    };
    let load = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed).to_string();
    section(
        "Server",
        &[
            ("craton_kv_version", VERSION.to_owned()),
            ("redis_mode", "standalone".to_owned()),
            ("process_id", std::process::id().to_string()),
            ("tcp_port", about.port.to_string()),
            ("io_threads_active", about.threads.to_string()),
            ("uptime_in_seconds", counters.started.elapsed().as_secs().to_string()),
        ],
    );
    section("Clients", &[("connected_clients", load(&counters.connected))]);
    section(
        "Persistence",
        &[
            ("file", about.file.clone()),
            ("model", about.model.clone()),
            ("acknowledged_writes_survive", about.promise.clone()),
            ("sync_points", load(&counters.syncs)),
            ("disk_is_full", u8::from(counters.is_full.load(Ordering::Relaxed)).to_string()),
        ],
    );
    section(
        "Stats",
        &[
            ("total_connections_received", load(&counters.connections)),
            ("total_commands_processed", load(&counters.commands)),
        ],
    );
    if wanted("Keyspace") {
        match context.tree.len() {
            Ok(0) => section("Keyspace", &[]),
            Ok(keys) => section("Keyspace", &[("db0", format!("keys={keys},expires=0,avg_ttl=0"))]),
            Err(why) => section("Keyspace", &[("error", why.to_string())]),
        }
    }
    out
}

pub fn config<S: Store>(context: &Context<S>, args: Args<'_>, out: &mut Vec<u8>) {
    if !is(args.get(1), "GET") {
        return error(out, "ERR CONFIG: only GET is supported, options are given at the start");
    }
    if args.len() < 3 {
        return error(out, "ERR wrong number of arguments for 'config|get' command");
    }
    let values = [
        ("save", String::new()),
        ("appendonly", "no".to_owned()),
        ("maxmemory", "0".to_owned()),
        ("databases", "1".to_owned()),
        ("port", context.about.port.to_string()),
    ];
    let wanted = |name: &str| args.from(2).any(|arg| super::glob::matches(&arg.to_ascii_lowercase(), name.as_bytes()));
    let found: Vec<_> = values.iter().filter(|(name, _)| wanted(name)).collect();
    array(out, 2 * found.len());
    for (name, value) in found {
        bulk(out, name.as_bytes());
        bulk(out, value.as_bytes());
    }
}

pub fn hello(out: &mut Vec<u8>) {
    array(out, 8);
    for (name, value) in [("server", "craton-kv"), ("version", VERSION), ("mode", "standalone")] {
        bulk(out, name.as_bytes());
        bulk(out, value.as_bytes());
    }
    bulk(out, b"proto");
    integer(out, 2);
}
