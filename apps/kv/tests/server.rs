//! The server in this process, over a store in memory.

use craton_kv::Tree;
use craton_kv::log::{Log, LogFile};
use craton_kv::memory::{Memory, ROOT};
use craton_kv::server::{About, Disk, Server};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub fn start(file: Option<fn() -> Box<dyn LogFile>>) -> Server<Memory> {
    let mut tree = Tree::open(Memory::new(256 << 20), ROOT).unwrap();
    let about = About { threads: 2, ..About::default() };
    let disk = file.map(|file| {
        let log = Arc::new(Log::new([file(), file()], 1));
        tree.set_log(Arc::clone(&log));
        tree.begin_generation(1).unwrap();
        let sync = |_: &Memory, gates: &craton_kv::server::Gates, then: &dyn Fn()| {
            let _paused = gates.pause();
            then();
            Ok(())
        };
        Disk { interval: Duration::ZERO, log, sync, log_bytes: 1 << 20, fill_bytes: 0 }
    });
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    Server::start(tree, listener, about, disk, Box::new(|| {})).unwrap()
}

pub struct Client(TcpStream);

impl Client {
    pub fn new(port: u16) -> Self {
        let socket = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(300))).unwrap();
        Self(socket)
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).unwrap();
    }

    #[track_caller]
    pub fn expect(&mut self, expected: &str) {
        let mut bytes = vec![0; expected.len()];
        let result = self.0.read_exact(&mut bytes);
        assert_eq!(String::from_utf8_lossy(&bytes), expected, "{result:?}");
    }

    #[track_caller]
    pub fn ask(&mut self, line: &str, expected: &str) {
        self.send(format!("{line}\r\n").as_bytes());
        self.expect(expected);
    }

    #[track_caller]
    pub fn expect_end(&mut self) {
        let mut rest = Vec::new();
        self.0.read_to_end(&mut rest).unwrap();
        assert_eq!(rest, b"");
    }

    #[track_caller]
    pub fn expect_nothing(&mut self) {
        self.0.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let mut byte = [0];
        let result = crate::process::read(&mut self.0, &mut byte);
        let is_none =
            result.as_ref().is_err_and(|why| [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&why.kind()));
        assert!(is_none, "{result:?}");
        self.0.set_read_timeout(Some(Duration::from_secs(300))).unwrap();
    }
}

#[test]
fn each_command_answers_as_in_redis() {
    let server = start(None);
    let mut client = Client::new(server.port());
    for (line, reply) in [
        ("PING", "+PONG\r\n"),
        ("ping hello", "$5\r\nhello\r\n"),
        ("ECHO x", "$1\r\nx\r\n"),
        ("GET a", "$-1\r\n"),
        ("SET a 1", "+OK\r\n"),
        ("GET a", "$1\r\n1\r\n"),
        ("INCR a", ":2\r\n"),
        ("INCRBY a -5", ":-3\r\n"),
        ("DECR b", ":-1\r\n"),
        ("DECRBY b 9", ":-10\r\n"),
        ("MGET a no b", "*3\r\n$2\r\n-3\r\n$-1\r\n$3\r\n-10\r\n"),
        ("EXISTS a no b a", ":3\r\n"),
        ("STRLEN b", ":3\r\n"),
        ("TYPE b", "+string\r\n"),
        ("TYPE no", "+none\r\n"),
        ("DBSIZE", ":2\r\n"),
        ("SET a x NX", "$-1\r\n"),
        ("SET no x XX", "$-1\r\n"),
        ("SET a y XX GET", "$2\r\n-3\r\n"),
        ("SET c z NX GET", "$-1\r\n"),
        ("SET c \"two words\" KEEPTTL", "+OK\r\n"),
        ("GET c", "$9\r\ntwo words\r\n"),
        ("SCAN 0", "*2\r\n$1\r\n0\r\n*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n"),
        ("SCAN 0 MATCH [bc] COUNT 100", "*2\r\n$1\r\n0\r\n*2\r\n$1\r\nb\r\n$1\r\nc\r\n"),
        ("SCAN 0 TYPE hash", "*2\r\n$1\r\n0\r\n*0\r\n"),
        ("DEL a no c", ":2\r\n"),
        ("SELECT 0", "+OK\r\n"),
        ("CONFIG GET appendonly", "*2\r\n$10\r\nappendonly\r\n$2\r\nno\r\n"),
        ("COMMAND DOCS", "*0\r\n"),
        ("CLIENT SETNAME me", "+OK\r\n"),
        ("FLUSHALL", "+OK\r\n"),
        ("DBSIZE", ":0\r\n"),
    ] {
        client.ask(line, reply);
    }
    client.send(b"INFO\r\n");
    client.send(b"QUIT\r\n");
    let mut rest = String::new();
    client.0.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("total_connections_received:1\r\n") && rest.ends_with("+OK\r\n"), "{rest}");
    server.stop().unwrap();
}

#[test]
fn bad_input_is_named_and_changes_nothing() {
    let server = start(None);
    let mut client = Client::new(server.port());
    client.ask("SET a text", "+OK\r\n");
    for (line, reply) in [
        ("nonsense 1 2", "-ERR unknown command 'nonsense', with args beginning with: '1' '2' \r\n"),
        ("get", "-ERR wrong number of arguments for 'get' command\r\n"),
        ("ping 1 2", "-ERR wrong number of arguments for 'ping' command\r\n"),
        ("INCR a", "-ERR value is not an integer or out of range\r\n"),
        ("INCRBY a x", "-ERR value is not an integer or out of range\r\n"),
        ("SET a b EX 10", "-ERR SET EX: keys that expire are not supported\r\n"),
        ("SET a b pxat 10", "-ERR SET PXAT: keys that expire are not supported\r\n"),
        ("SET a b NX XX", "-ERR syntax error\r\n"),
        ("SET a b what", "-ERR syntax error\r\n"),
        ("SELECT 1", "-ERR DB index is out of range: there is one, 0\r\n"),
        ("SCAN x", "-ERR invalid cursor\r\n"),
        ("SCAN 77", "-ERR invalid cursor\r\n"),
        ("SCAN 0 COUNT 0", "-ERR syntax error\r\n"),
        ("CONFIG SET a b", "-ERR CONFIG: only GET is supported, options are given at the start\r\n"),
        ("LPUSH a b", "-ERR unknown command 'LPUSH', with args beginning with: 'a' 'b' \r\n"),
        ("HELLO 3", "-NOPROTO unsupported protocol version or option: this server speaks RESP2\r\n"),
        ("FLUSHALL now", "-ERR syntax error\r\n"),
        ("SET big 9223372036854775807", "+OK\r\n"),
        ("INCR big", "-ERR increment or decrement would overflow\r\n"),
        ("GET a", "$4\r\ntext\r\n"),
        ("GET big", "$19\r\n9223372036854775807\r\n"),
        ("DBSIZE", ":2\r\n"),
    ] {
        client.ask(line, reply);
    }
    server.stop().unwrap();
}

#[test]
fn bytes_that_break_the_protocol_close_one_connection() {
    let server = start(None);
    let mut other = Client::new(server.port());
    other.ask("SET a 1", "+OK\r\n");
    for (bytes, reply) in [
        (&b"*2\r\n$3\r\nGET\r\n:1\r\n"[..], "-ERR Protocol error: expected '$', got ':'\r\n"),
        (b"*1048577\r\n", "-ERR Protocol error: invalid multibulk length\r\n"),
        (b"*2\r\n$3\r\nGET\r\n$600000000\r\n", "-ERR Protocol error: invalid bulk length\r\n"),
        (b"POST / HTTP/1.1\r\nHost: x\r\n\r\n", "-ERR this is no HTTP server\r\n"),
    ] {
        let mut client = Client::new(server.port());
        client.send(bytes);
        client.expect(reply);
        client.expect_end();
        other.ask("GET a", "$1\r\n1\r\n");
    }
    // Half a command: the server closes the connection.
    for _ in 0..20 {
        let mut client = Client::new(server.port());
        client.send(b"GET a");
        client.0.shutdown(std::net::Shutdown::Write).unwrap();
        client.expect_end();
    }
    let mut client = Client::new(server.port());
    client.send(b"*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$100\r\nhalf");
    drop(client);
    other.ask("EXISTS b", ":0\r\n");
    other.ask("DBSIZE", ":1\r\n");
    server.stop().unwrap();
}

#[test]
fn a_line_of_a_gigabyte_is_refused_without_keeping_it() {
    let server = start(None);
    let mut client = Client::new(server.port());
    let part = vec![b'a'; 1 << 20];
    // The server answers after 64 KiB, and drops the rest.
    (0..1024).for_each(|_| client.send(&part));
    client.expect("-ERR Protocol error: line longer than 65536 bytes\r\n");
    client.expect_end();
    server.stop().unwrap();
}

#[test]
fn pipelined_replies_come_in_order_also_when_the_client_reads_late() {
    let server = start(None);
    let mut client = Client::new(server.port());
    let value = "v".repeat(1 << 20);
    client.send(format!("*3\r\n$3\r\nSET\r\n$1\r\na\r\n${}\r\n{value}\r\n", value.len()).as_bytes());
    client.expect("+OK\r\n");
    // 64 MiB of replies, of which the server keeps a few.
    client.send(&b"GET a\r\nINCR n\r\n".repeat(64));
    std::thread::sleep(Duration::from_millis(100));
    for n in 1..=64 {
        client.expect(&format!("${}\r\n{value}\r\n:{n}\r\n", value.len()));
    }
    server.stop().unwrap();
}

#[test]
fn a_scan_returns_each_key_that_stays() {
    let server = start(None);
    let mut client = Client::new(server.port());
    for i in 0..3000 {
        client.send(format!("SET key{i} x\r\n").as_bytes());
    }
    client.expect(&"+OK\r\n".repeat(3000));
    let (mut cursor, mut found, mut rounds) = ("0".to_owned(), std::collections::BTreeSet::new(), 0);
    loop {
        client.send(format!("SCAN {cursor} COUNT 100 MATCH key*\r\nSET new{rounds} x\r\n").as_bytes());
        let mut text = String::new();
        while !text.ends_with("+OK\r\n") {
            let mut part = [0; 4096];
            let len = crate::process::read(&mut client.0, &mut part).unwrap();
            text += std::str::from_utf8(&part[..len]).unwrap();
        }
        let mut lines = text.lines();
        cursor = lines.nth(2).unwrap().to_owned();
        found.extend(lines.filter(|line| line.starts_with("key")).map(str::to_owned));
        rounds += 1;
        if cursor == "0" {
            break;
        }
    }
    assert_eq!(found.len(), 3000);
    assert!((10..=40).contains(&rounds), "{rounds}");
    server.stop().unwrap();
}

static GATE: AtomicBool = AtomicBool::new(false);

struct Sink;

impl LogFile for Sink {
    fn write(&self, _: u64, _: &[u8]) -> std::io::Result<()> {
        Ok(())
    }

    fn sync(&self) -> std::io::Result<()> {
        Ok(())
    }

    fn read(&self, _: u64, _: usize) -> std::io::Result<Vec<u8>> {
        Ok(Vec::new())
    }

    fn size(&self) -> std::io::Result<u64> {
        Ok(0)
    }
}

struct Broken;

impl LogFile for Broken {
    fn write(&self, _: u64, _: &[u8]) -> std::io::Result<()> {
        Err(std::io::Error::from_raw_os_error(5))
    }

    fn sync(&self) -> std::io::Result<()> {
        Ok(())
    }

    fn read(&self, _: u64, _: usize) -> std::io::Result<Vec<u8>> {
        Ok(Vec::new())
    }

    fn size(&self) -> std::io::Result<u64> {
        Ok(0)
    }
}

/// Waits for the gate.
struct Slow;

impl LogFile for Slow {
    fn write(&self, _: u64, _: &[u8]) -> std::io::Result<()> {
        Ok(())
    }

    fn sync(&self) -> std::io::Result<()> {
        while !GATE.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    fn read(&self, _: u64, _: usize) -> std::io::Result<Vec<u8>> {
        Ok(Vec::new())
    }

    fn size(&self) -> std::io::Result<u64> {
        Ok(0)
    }
}

static IS_FULL: AtomicBool = AtomicBool::new(true);

struct Full;

impl LogFile for Full {
    fn write(&self, _: u64, _: &[u8]) -> std::io::Result<()> {
        if IS_FULL.load(Ordering::SeqCst) { Err(std::io::Error::from_raw_os_error(28)) } else { Ok(()) }
    }

    fn sync(&self) -> std::io::Result<()> {
        Ok(())
    }

    fn read(&self, _: u64, _: usize) -> std::io::Result<Vec<u8>> {
        Ok(Vec::new())
    }

    fn size(&self) -> std::io::Result<u64> {
        Ok(0)
    }
}

#[test]
fn writes_are_acknowledged_when_the_log_has_them() {
    let server = start(Some(|| Box::new(Slow)));
    let (mut writer, mut reader) = (Client::new(server.port()), Client::new(server.port()));
    writer.send(b"SET a 1\r\nGET a\r\n");
    writer.expect_nothing();
    reader.ask("PING", "+PONG\r\n");
    GATE.store(true, Ordering::SeqCst);
    writer.expect("+OK\r\n$1\r\n1\r\n");
    writer.send(&b"INCR n\r\n".repeat(100));
    let replies: String = (1..=100).map(|n| format!(":{n}\r\n")).collect();
    writer.expect(&replies);
    server.stop().unwrap();
}

#[test]
fn a_log_that_fails_acknowledges_nothing() {
    let server = start(Some(|| Box::new(Broken)));
    let mut client = Client::new(server.port());
    client.send(b"SET a 1\r\n");
    client.expect("-ERR not durable: Input/output error (os error 5)\r\n");
    client.expect_end();
    assert_eq!(server.stop().err(), Some(craton_kv::StoreError::System(5)));
}

#[test]
fn a_full_disk_refuses_writes_until_it_has_room_and_serves_reads() {
    let server = start(Some(|| Box::new(Full)));
    let mut client = Client::new(server.port());
    client.send(b"SET a 1\r\n");
    client.expect("-OOM not durable: No space left on device (os error 28)\r\n");
    client.expect_end();
    let mut client = Client::new(server.port());
    let refusal = "-OOM the disk has no room for the log: writes are refused until it has\r\n";
    for write in ["SET b 1", "del a", "INCR n", "FLUSHALL"] {
        client.ask(write, refusal);
    }
    client.ask("GET a", "$1\r\n1\r\n");
    client.ask("EXISTS b n", ":0\r\n");
    IS_FULL.store(false, Ordering::SeqCst);
    loop {
        client.send(b"SET b 2\r\n");
        let mut line = String::new();
        while !line.ends_with('\n') {
            let mut byte = [0];
            client.0.read_exact(&mut byte).unwrap();
            line.push(byte[0].into());
        }
        match &line[..] {
            "+OK\r\n" => break,
            line => assert_eq!(line, refusal),
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(server.stop().unwrap().len(), Ok(2));
}

#[test]
fn the_keeper_gives_memory_back() {
    let is_maintained = || {
        let server = start(None);
        let mut client = Client::new(server.port());
        client.send(b"PING\r\n");
        client.expect("+PONG\r\n");
        server.stop().unwrap().store().maintained() > 0
    };
    // The keeper may not have begun when the server stops.
    assert!((0..1000).any(|_| is_maintained()));
}

#[test]
fn shutdown_takes_the_words_of_redis_alone() {
    let server = start(None);
    let mut client = Client::new(server.port());
    client.send(b"SHUTDOWN soon\r\nCONFIG GET\r\nPING\r\n");
    client.expect("-ERR syntax error\r\n-ERR wrong number of arguments for 'config|get' command\r\n+PONG\r\n");
    server.stop().unwrap();
}

#[test]
fn a_shutdown_behind_a_write_comes_after_its_reply() {
    let (end, ends) = std::sync::mpsc::channel();
    let mut tree = Tree::open(Memory::new(256 << 20), ROOT).unwrap();
    let log = Arc::new(Log::new([Box::new(Sink), Box::new(Sink)], 1));
    tree.set_log(Arc::clone(&log));
    tree.begin_generation(1).unwrap();
    let sync = |_: &Memory, _: &craton_kv::server::Gates, _: &dyn Fn()| Ok(());
    let disk = Disk { interval: Duration::ZERO, log, sync, log_bytes: 1 << 20, fill_bytes: 0 };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let about = About { threads: 1, ..About::default() };
    let server = Server::start(tree, listener, about, Some(disk), Box::new(move || end.send(()).unwrap())).unwrap();
    let mut client = Client::new(server.port());
    client.send(b"SET a 1\r\nSHUTDOWN\r\n");
    client.expect("+OK\r\n");
    ends.recv_timeout(Duration::from_secs(300)).unwrap();
    server.stop().unwrap();
}
