//! The commands: arguments in, a reply out. An error reply names the fault; nothing has changed.

use super::cursors::Cursors;
use super::reply::{NULL, OK, array, bulk, bulk_head, error, integer, simple};
use super::resp::{Args, number};
use super::{Counters, info};
use crate::store::{Store, StoreError};
use crate::tree::{Tree, When};
use std::sync::atomic::{AtomicBool, Ordering};

/// By default.
const SCAN_COUNT: i64 = 10;

const SYNTAX: &str = "ERR syntax error";
const FULL: &str = "OOM the disk has no room for the log: writes are refused until it has";
const NO_NUMBER: &str = "ERR value is not an integer or out of range";

pub struct Context<S: Store> {
    pub tree: Tree<S>,
    pub cursors: Cursors,
    pub counters: Counters,
    /// A cleared tree waits to be freed.
    pub has_dead: AtomicBool,
    pub about: About,
}

/// For `INFO`.
#[derive(Clone, Debug, Default)]
pub struct About {
    pub port: u16,
    /// Failures that an acknowledged write survives.
    pub promise: String,
    pub file: String,
    pub threads: usize,
    pub model: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum After {
    Read,
    /// The reply waits for a sync point, if there are any.
    Wrote,
    Close,
    Shutdown,
}

/// Fewest and most arguments, name included; 0: unlimited.
type Arity = (usize, usize);

const COMMANDS: [(&str, Arity); 27] = [
    ("GET", (2, 2)),
    ("SET", (3, 0)),
    ("DEL", (2, 0)),
    ("UNLINK", (2, 0)),
    ("EXISTS", (2, 0)),
    ("INCR", (2, 2)),
    ("DECR", (2, 2)),
    ("INCRBY", (3, 3)),
    ("DECRBY", (3, 3)),
    ("MGET", (2, 0)),
    ("STRLEN", (2, 2)),
    ("TYPE", (2, 2)),
    ("SCAN", (2, 0)),
    ("DBSIZE", (1, 1)),
    ("FLUSHALL", (1, 2)),
    ("FLUSHDB", (1, 2)),
    ("INFO", (1, 0)),
    ("PING", (1, 2)),
    ("ECHO", (2, 2)),
    ("SELECT", (2, 2)),
    ("QUIT", (1, 0)),
    ("COMMAND", (1, 0)),
    ("CONFIG", (2, 0)),
    ("CLIENT", (2, 0)),
    ("HELLO", (1, 0)),
    ("SHUTDOWN", (1, 2)),
    ("POST", (1, 0)),
];

/// Refused on a full disk.
const WRITES: [&str; 9] = ["SET", "DEL", "UNLINK", "INCR", "DECR", "INCRBY", "DECRBY", "FLUSHALL", "FLUSHDB"];

const LONGEST_NAME: usize = 8;

pub fn run<S: Store>(context: &Context<S>, args: Args<'_>, out: &mut Vec<u8>) -> After {
    let name = args.get(0);
    let mut upper = [0; LONGEST_NAME];
    let upper = match upper.get_mut(..name.len()) {
        Some(upper) => {
            upper.copy_from_slice(name);
            upper.make_ascii_uppercase();
            &*upper
        }
        None => &[],
    };
    let Some((known, (fewest, most))) = COMMANDS.iter().find(|(known, _)| known.as_bytes() == upper) else {
        return unknown(args, out);
    };
    if args.len() < *fewest || *most > 0 && args.len() > *most {
        error(out, &format!("ERR wrong number of arguments for '{}' command", known.to_lowercase()));
        return After::Read;
    }
    if context.counters.is_full.load(Ordering::Relaxed) && WRITES.contains(known) {
        error(out, FULL);
        return After::Read;
    }
    let mark = out.len();
    match dispatch(context, known, args, out) {
        Ok(after) => after,
        Err(why) => {
            out.truncate(mark);
            let kind = if why == StoreError::NoMemory { "OOM" } else { "ERR" };
            error(out, &format!("{kind} {why}"));
            After::Read
        }
    }
}

fn dispatch<S: Store>(
    context: &Context<S>,
    name: &str,
    args: Args<'_>,
    out: &mut Vec<u8>,
) -> Result<After, StoreError> {
    let tree = &context.tree;
    match name {
        "GET" => {
            get(tree, args.get(1), out)?;
            Ok(After::Read)
        }
        "MGET" => {
            array(out, args.len() - 1);
            args.from(1).try_for_each(|key| get(tree, key, out))?;
            Ok(After::Read)
        }
        "SET" => set(tree, args, out),
        "DEL" | "UNLINK" => {
            let mut n = 0;
            for key in args.from(1) {
                n += i64::from(tree.remove(key)?);
            }
            integer(out, n);
            Ok(if n > 0 { After::Wrote } else { After::Read })
        }
        "EXISTS" => {
            let mut n = 0;
            for key in args.from(1) {
                n += i64::from(tree.contains(key)?);
            }
            integer(out, n);
            Ok(After::Read)
        }
        "INCR" => add(tree, args.get(1), Some(1), out),
        "DECR" => add(tree, args.get(1), Some(-1), out),
        "INCRBY" => add(tree, args.get(1), number(args.get(2)), out),
        "DECRBY" => add(tree, args.get(1), number(args.get(2)).and_then(i64::checked_neg), out),
        "STRLEN" => {
            integer(out, tree.value_len(args.get(1))?.unwrap_or(0) as i64);
            Ok(After::Read)
        }
        "TYPE" => {
            simple(out, if tree.contains(args.get(1))? { "string" } else { "none" });
            Ok(After::Read)
        }
        "SCAN" => {
            if let Some(wrong) = scan(context, args, out)? {
                error(out, wrong);
            }
            Ok(After::Read)
        }
        "DBSIZE" => {
            integer(out, tree.len()? as i64);
            Ok(After::Read)
        }
        "FLUSHALL" | "FLUSHDB" => flush(context, args, out),
        _ => Ok(about(context, name, args, out)),
    }
}

fn about<S: Store>(context: &Context<S>, name: &str, args: Args<'_>, out: &mut Vec<u8>) -> After {
    match name {
        "PING" if args.len() == 2 => bulk(out, args.get(1)),
        "PING" => simple(out, "PONG"),
        "ECHO" => bulk(out, args.get(1)),
        "SELECT" => match number(args.get(1)) {
            Some(0) => out.extend_from_slice(OK),
            Some(_) => error(out, "ERR DB index is out of range: there is one, 0"),
            None => error(out, NO_NUMBER),
        },
        "INFO" => bulk(out, info::text(context, args).as_bytes()),
        // Clients work without the list.
        "COMMAND" if is(args.get(1), "COUNT") => integer(out, COMMANDS.len() as i64 - 1),
        "COMMAND" => array(out, 0),
        "CONFIG" => info::config(context, args, out),
        "CLIENT" if is(args.get(1), "SETNAME") || is(args.get(1), "SETINFO") => out.extend_from_slice(OK),
        "CLIENT" => error(out, &format!("ERR CLIENT {} is not supported", text(args.get(1)))),
        "HELLO" if args.len() == 1 || args.get(1) == b"2" && args.len() == 2 => info::hello(out),
        "HELLO" => error(out, "NOPROTO unsupported protocol version or option: this server speaks RESP2"),
        "QUIT" => {
            out.extend_from_slice(OK);
            return After::Close;
        }
        // Each way ends with all acknowledged writes in the file.
        "SHUTDOWN" if args.from(1).all(|how| ["NOSAVE", "SAVE", "NOW", "FORCE"].iter().any(|known| is(how, known))) => {
            return After::Shutdown;
        }
        "SHUTDOWN" => error(out, SYNTAX),
        // A browser's form: the rest is not from a client.
        _ => {
            error(out, "ERR this is no HTTP server");
            return After::Close;
        }
    }
    After::Read
}

fn get<S: Store>(tree: &Tree<S>, key: &[u8], out: &mut Vec<u8>) -> Result<(), StoreError> {
    let mark = out.len();
    if tree.get_with_head(key, |len, out| bulk_head(out, len), out)? {
        out.extend_from_slice(b"\r\n");
    } else {
        out.truncate(mark);
        out.extend_from_slice(NULL);
    }
    Ok(())
}

fn set<S: Store>(tree: &Tree<S>, args: Args<'_>, out: &mut Vec<u8>) -> Result<After, StoreError> {
    let (mut when, mut wants_old) = (When::Always, false);
    for option in args.from(3) {
        let upper = option.to_ascii_uppercase();
        match &upper[..] {
            b"NX" if when == When::Always => when = When::Absent,
            b"XX" if when == When::Always => when = When::Present,
            b"GET" => wants_old = true,
            b"EX" | b"PX" | b"EXAT" | b"PXAT" => {
                error(out, &format!("ERR SET {}: keys that expire are not supported", text(&upper)));
                return Ok(After::Read);
            }
            // Keys do not expire.
            b"KEEPTTL" => {}
            _ => {
                error(out, SYNTAX);
                return Ok(After::Read);
            }
        }
    }
    let mut old = Vec::new();
    let outcome = tree.put(args.get(1), args.get(2), when, wants_old.then_some(&mut old))?;
    match (wants_old, outcome.existed) {
        (true, true) => bulk(out, &old),
        (true, false) => out.extend_from_slice(NULL),
        _ => out.extend_from_slice(if outcome.changed { OK } else { NULL }),
    }
    Ok(if outcome.changed { After::Wrote } else { After::Read })
}

fn add<S: Store>(tree: &Tree<S>, key: &[u8], by: Option<i64>, out: &mut Vec<u8>) -> Result<After, StoreError> {
    let Some(by) = by else {
        error(out, NO_NUMBER);
        return Ok(After::Read);
    };
    let mut sum = 0;
    let next = |old: Option<&[u8]>| {
        let old = old.map_or(Some(0), number).ok_or(NO_NUMBER)?;
        sum = old.checked_add(by).ok_or("ERR increment or decrement would overflow")?;
        Ok::<_, &str>(sum.to_string().into_bytes())
    };
    match tree.update(key, next)? {
        Ok(()) => {
            integer(out, sum);
            Ok(After::Wrote)
        }
        Err(why) => {
            error(out, why);
            Ok(After::Read)
        }
    }
}

/// `Some`: the arguments' fault.
fn scan<S: Store>(context: &Context<S>, args: Args<'_>, out: &mut Vec<u8>) -> Result<Option<&'static str>, StoreError> {
    let cursor = std::str::from_utf8(args.get(1)).ok().and_then(|text| text.parse::<u64>().ok());
    let (mut pattern, mut count, mut is_string) = (&b"*"[..], SCAN_COUNT, true);
    let mut options = args.from(2);
    while let Some(option) = options.next() {
        let Some(value) = options.next() else { return Ok(Some(SYNTAX)) };
        if is(option, "MATCH") {
            pattern = value;
        } else if is(option, "COUNT") {
            match number(value) {
                Some(n) if n > 0 => count = n,
                Some(_) => return Ok(Some(SYNTAX)),
                None => return Ok(Some(NO_NUMBER)),
            }
        } else if is(option, "TYPE") {
            is_string = is(value, "string");
        } else {
            return Ok(Some(SYNTAX));
        }
    }
    let from = match cursor {
        Some(0) => Some(Box::default()),
        Some(number) => context.cursors.key(number),
        None => None,
    };
    let Some(mut from) = from else { return Ok(Some("ERR invalid cursor")) };
    let mut entries = Vec::new();
    let next = loop {
        match context.tree.scan_leaf(&from, false, &mut entries)? {
            Some(next) if (entries.len() as i64) < count => from = next,
            next => break next,
        }
    };
    let next = next.map_or(0, |next| context.cursors.keep(next));
    entries.retain(|(key, _)| is_string && super::glob::matches(pattern, key));
    array(out, 2);
    bulk(out, next.to_string().as_bytes());
    array(out, entries.len());
    entries.iter().for_each(|(key, _)| bulk(out, key));
    Ok(None)
}

fn flush<S: Store>(context: &Context<S>, args: Args<'_>, out: &mut Vec<u8>) -> Result<After, StoreError> {
    if args.len() == 2 && !is(args.get(1), "SYNC") && !is(args.get(1), "ASYNC") {
        error(out, SYNTAX);
        return Ok(After::Read);
    }
    context.tree.clear()?;
    // ORDERING: pairs with the acquire in `keep`.
    context.has_dead.store(true, Ordering::Release);
    out.extend_from_slice(OK);
    Ok(After::Wrote)
}

fn unknown(args: Args<'_>, out: &mut Vec<u8>) -> After {
    let mut message = format!("ERR unknown command '{}', with args beginning with: ", text(args.get(0)));
    for arg in args.from(1).take(8) {
        message += &format!("'{}' ", text(arg));
    }
    error(out, &message);
    // A second line of HTTP.
    if is(args.get(0), "HOST:") { After::Close } else { After::Read }
}

pub fn is(text: &[u8], name: &str) -> bool {
    text.eq_ignore_ascii_case(name.as_bytes())
}

/// Escaped for a message.
fn text(bytes: &[u8]) -> String {
    let end = bytes.len().min(128);
    bytes[..end].escape_ascii().to_string()
}
