//! A server of the Redis protocol as a process; killed when dropped.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(120);
const PERIOD: Duration = Duration::from_micros(200);
const CLIENTS: &str = "50";
const VALUE_BYTES: &str = "64";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Server {
    /// Acknowledges what is on the disk.
    CratonAlways,
    /// In the page cache.
    Craton,
    RedisAlways,
    RedisSecond,
    Redis,
}

impl Server {
    pub fn name(self) -> &'static str {
        match self {
            Self::CratonAlways => "craton-kv-always",
            Self::Craton => "craton-kv",
            Self::RedisAlways => "redis-always",
            Self::RedisSecond => "redis-everysec",
            Self::Redis => "redis-no",
        }
    }

    fn command(self, programs: &Programs, folder: &Path, port: u16) -> Command {
        let craton = |sync: &[&str]| {
            let mut command = Command::new(&programs.craton_kv);
            command.arg("--file").arg(folder.join("heap")).args(["--port", &port.to_string()]).args(sync);
            command
        };
        let redis = |fsync: &str| {
            let mut command = Command::new("redis-server");
            let port = port.to_string();
            command.args(["--port", &port, "--save", "", "--appendonly", "yes", "--appendfsync", fsync, "--dir"]);
            command.arg(folder);
            command
        };
        match self {
            Self::CratonAlways => craton(&["--sync", "always"]),
            Self::Craton => craton(&[]),
            Self::RedisAlways => redis("always"),
            Self::RedisSecond => redis("everysec"),
            Self::Redis => redis("no"),
        }
    }
}

pub struct Programs {
    craton_kv: PathBuf,
}

impl Programs {
    pub fn find(tool: &dyn Fn(&str) -> Result<PathBuf, String>) -> Result<Self, String> {
        let craton_kv = tool("craton-kv")?;
        for program in ["redis-server", "redis-benchmark"] {
            let found = Command::new(program).arg("--version").stdout(Stdio::null()).status();
            found.map_err(|e| format!("{program}: {e}; Debian's packages redis-server and redis-tools have them"))?;
        }
        Ok(Self { craton_kv: std::path::absolute(&craton_kv).unwrap_or(craton_kv) })
    }
}

pub struct Running {
    child: Child,
    port: u16,
}

impl Drop for Running {
    fn drop(&mut self) {
        // Does nothing after a kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    pub fn start(programs: &Programs, server: Server, folder: &Path) -> Result<Self, String> {
        Self::restart(programs, server, folder).map(|(running, _)| running)
    }

    /// Returns the milliseconds until it served a GET.
    pub fn restart(programs: &Programs, server: Server, folder: &Path) -> Result<(Self, f64), String> {
        let port = free_port()?;
        let said =
            File::create(folder.join("said")).map_err(|e| format!("cannot write in {}: {e}", folder.display()))?;
        let mut command = server.command(programs, folder, port);
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
        let start = Instant::now();
        let child = quiet.spawn().map_err(|e| format!("cannot start {}: {e}", server.name()))?;
        let mut running = Self { child, port };
        loop {
            // While it loads, Redis answers with an error.
            if running.ask("GET key:000000000001\r\n").is_ok_and(|reply| reply.starts_with('$')) {
                return Ok((running, start.elapsed().as_secs_f64() * 1e3));
            }
            if let Ok(Some(status)) = running.child.try_wait() {
                let said = fs::read_to_string(folder.join("said")).unwrap_or_default();
                return Err(format!("{} ended with {status}: {}", server.name(), said.trim()));
            }
            if start.elapsed() > PATIENCE {
                return Err(format!("{} served nothing for {} s", server.name(), PATIENCE.as_secs()));
            }
            std::thread::sleep(PERIOD);
        }
    }

    fn ask(&self, command: &str) -> Result<String, String> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let talk = || {
            let mut socket = TcpStream::connect_timeout(&address, PATIENCE)?;
            socket.set_read_timeout(Some(PATIENCE))?;
            socket.write_all(command.as_bytes())?;
            let mut reply = String::new();
            BufReader::new(socket).read_line(&mut reply)?;
            Ok(reply)
        };
        talk().map_err(|e: std::io::Error| format!("no reply to {command:?}: {e}"))
    }

    pub fn benchmark(&self, requests: u64, keys: u64, pipeline: u64) -> Result<f64, String> {
        let mut command = Command::new("redis-benchmark");
        command.args(["-p", &self.port.to_string(), "-t", "set", "-c", CLIENTS, "-d", VALUE_BYTES, "--csv"]);
        command.args(["-n", &requests.to_string(), "-r", &keys.to_string(), "-P", &pipeline.to_string()]);
        let output = command.output().map_err(|e| format!("redis-benchmark: {e}"))?;
        per_second(&String::from_utf8_lossy(&output.stdout))
    }

    /// Sent to the disk.
    pub fn written_bytes(&self) -> u64 {
        let io = fs::read_to_string(format!("/proc/{}/io", self.child.id())).unwrap_or_default();
        let line = io.lines().find_map(|line| line.strip_prefix("write_bytes: "));
        line.and_then(|bytes| bytes.trim().parse().ok()).unwrap_or(0)
    }

    pub fn sync_files(&self, folder: &Path) {
        let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        files.filter_map(|path| File::open(path).ok()).for_each(|file| _ = file.sync_all());
    }

    /// Waits until acknowledged writes are on their way to the disk.
    pub fn settle(&self, server: Server) {
        if server == Server::RedisSecond {
            std::thread::sleep(Duration::from_millis(1500));
        }
    }

    pub fn keys(&self) -> Result<u64, String> {
        let reply = self.ask("DBSIZE\r\n")?;
        let number = reply.trim().strip_prefix(':').and_then(|keys| keys.parse().ok());
        number.ok_or_else(|| format!("{reply:?} is no number of keys"))
    }

    pub fn kill(self) {
        drop(self);
    }
}

fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let address = listener.and_then(|listener| listener.local_addr());
    address.map(|address| address.port()).map_err(|e| format!("no port is free: {e}"))
}

/// Reads redis-benchmark's line `"SET","123456.78",…`.
fn per_second(csv: &str) -> Result<f64, String> {
    let line = csv.lines().find(|line| line.starts_with("\"SET\""));
    let figure = line.and_then(|line| line.split(',').nth(1));
    let number = figure.and_then(|text| text.trim_matches('"').parse().ok());
    number.ok_or_else(|| format!("redis-benchmark gave no figure: {}", csv.trim()))
}

#[cfg(test)]
mod tests;
