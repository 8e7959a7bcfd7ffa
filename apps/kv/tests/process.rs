//! The program `craton-kv` as a process, and a client.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

pub fn command() -> Command {
    Command::new(env!("CARGO_BIN_EXE_craton-kv"))
}

pub struct Running {
    child: Child,
    pub port: u16,
}

impl Running {
    /// On a free port.
    pub fn start(file: &Path, options: &[&str]) -> Self {
        let mut command = command();
        command.arg("--file").arg(file).args(["--port", "0"]).args(options);
        Self::of(command).unwrap_or_else(|greeting| panic!("no port in {greeting:?}"))
    }

    /// Error: what it printed.
    pub fn of(mut command: Command) -> Result<Self, String> {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut greeting = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut greeting).unwrap();
        let port = greeting.split("listening on 127.0.0.1:").nth(1).and_then(|rest| rest.split(',').next());
        let Some(port) = port.and_then(|port| port.parse().ok()) else {
            let _ = child.wait();
            return Err(greeting);
        };
        Ok(Self { child, port })
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Returns the exit status.
    pub fn terminate(mut self) -> i32 {
        let status = Command::new("sh").args(["-c", "kill -TERM $0", &self.child.id().to_string()]).status().unwrap();
        assert!(status.success());
        self.child.wait().unwrap().code().unwrap_or(-1)
    }

    pub fn wait(mut self) -> i32 {
        self.child.wait().unwrap().code().unwrap_or(-1)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("server {}: {:?}", self.child.id(), self.child.try_wait());
        }
        // Mostly ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn run(args: &[&str]) -> Output {
    command().args(args).stdin(Stdio::null()).output().unwrap()
}

pub struct Client {
    socket: TcpStream,
    received: Vec<u8>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    Line(String),
    Bulk(Option<Vec<u8>>),
}

/// On a busy disk a flush can take a minute.
const MOST_WAIT: Duration = Duration::from_secs(600);

/// `None`: the server is gone.
fn unless_gone<T>(result: io::Result<T>) -> Option<T> {
    use ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset};
    match result {
        Err(why) if matches!(why.kind(), BrokenPipe | ConnectionRefused | ConnectionReset) => None,
        result => Some(result.unwrap_or_else(|why| panic!("the server does not answer: {why}"))),
    }
}

/// A process that was stopped and goes on finds a read with a time limit interrupted (signal(7)).
pub fn read(socket: &mut TcpStream, part: &mut [u8]) -> io::Result<usize> {
    loop {
        match socket.read(part) {
            Err(why) if why.kind() == ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

impl Client {
    pub fn new(port: u16) -> Option<Self> {
        let socket = unless_gone(TcpStream::connect((Ipv4Addr::LOCALHOST, port)))?;
        socket.set_read_timeout(Some(MOST_WAIT)).unwrap();
        socket.set_nodelay(true).unwrap();
        Some(Self { socket, received: Vec::new() })
    }

    pub fn send(&mut self, bytes: &[u8]) -> Option<()> {
        unless_gone(self.socket.write_all(bytes))
    }

    /// `None`: the server is gone.
    pub fn reply(&mut self) -> Option<Reply> {
        let line = self.line()?;
        let Some(len) = line.strip_prefix('$') else { return Some(Reply::Line(line)) };
        let Ok(len) = len.parse::<usize>() else { return Some(Reply::Bulk(None)) };
        while self.received.len() < len + 2 {
            self.receive()?;
        }
        let value = self.received[..len].to_vec();
        self.received.drain(..len + 2);
        Some(Reply::Bulk(Some(value)))
    }

    pub fn ask(&mut self, command: &str) -> Option<Reply> {
        self.send(command.as_bytes())?;
        self.send(b"\r\n")?;
        self.reply()
    }

    fn line(&mut self) -> Option<String> {
        loop {
            if let Some(at) = self.received.windows(2).position(|two| two == b"\r\n") {
                let line = String::from_utf8_lossy(&self.received[..at]).into_owned();
                self.received.drain(..at + 2);
                return Some(line);
            }
            self.receive()?;
        }
    }

    fn receive(&mut self) -> Option<()> {
        let mut part = [0; 16 << 10];
        let len = unless_gone(read(&mut self.socket, &mut part)).filter(|len| *len > 0)?;
        self.received.extend_from_slice(&part[..len]);
        Some(())
    }
}
