//! A running process that stands still while it is read.
//!
//! **What.** If all threads sleep, [`Live::asleep`] reads without a stop. [`Live::stop`] stops them
//! by `ptrace`. When [`Live`] is dropped or this program is killed they continue, with the signals
//! that stopped them, in their system calls ([`restart`]).
//!
//! **Unsafe.** Calls `ptrace` and `process_vm_writev`.

mod restart;

use crate::mapped::root_of;
use crate::memory::{Map, Memory, Thread};
use object::elf::{NT_ARM_SVE, NT_PRFPREG, NT_PRSTATUS, NT_X86_XSTATE};
use rustix::process::{Pid, WaitOptions, waitpid};
use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::ptr::null_mut;
use std::thread::sleep;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(5);
const MOST_REGISTERS: usize = 16 << 10;
/// By note number.
const SETS: [u32; 3] = [NT_PRSTATUS, NT_PRFPREG, if cfg!(target_arch = "x86_64") { NT_X86_XSTATE } else { NT_ARM_SVE }];

#[derive(Debug)]
pub struct Live {
    pid: u32,
    memory: File,
    maps: Vec<Map>,
    threads: Vec<Thread>,
    /// With the signal to deliver at the end.
    stopped: BTreeMap<u32, i32>,
    /// With their context switches.
    asleep: BTreeMap<u32, u64>,
    /// When the process was let go.
    has_changed: bool,
}

impl Live {
    /// # Errors
    /// The system's error, with a remedy.
    pub fn stop(pid: u32) -> Result<Self, String> {
        let mut this = Self::new(pid, open(pid, false)?, Vec::new());
        // Threads that run may make others.
        while this.stop_some()? {}
        this.maps = maps(pid)?;
        this.threads = this.stopped.keys().map(|id| registers(*id)).collect();
        if this.threads.is_empty() {
            return Err(format!("process {pid} has ended"));
        }
        Ok(this)
    }

    /// `None` if a thread does not sleep. Afterwards ask [`Memory::is_unchanged`].
    ///
    /// # Errors
    /// The system's error, with a remedy.
    pub fn asleep(pid: u32) -> Result<Option<Self>, String> {
        let memory = open(pid, false)?;
        let Some(asleep) = asleep(pid) else { return Ok(None) };
        let mut this = Self::new(pid, memory, maps(pid)?);
        this.asleep = asleep;
        Ok(Some(this))
    }

    fn new(pid: u32, memory: File, maps: Vec<Map>) -> Self {
        let (stopped, asleep) = (BTreeMap::new(), BTreeMap::new());
        Self { pid, memory, maps, threads: Vec::new(), stopped, asleep, has_changed: false }
    }

    /// The process goes on: later reads may show changes.
    pub fn let_go(&mut self) {
        self.has_changed = !self.is_unchanged();
        self.asleep.clear();
        for (id, signal) in std::mem::take(&mut self.stopped) {
            let _ = call(libc::PTRACE_DETACH, id, signal as usize);
        }
    }

    fn stop_some(&mut self) -> Result<bool, String> {
        let ids = tasks(self.pid).map_err(|e| format!("process {} has ended: {e}", self.pid))?;
        let before = self.stopped.len();
        for id in ids {
            // An ended thread sends no signal, nor does the first while it awaits others.
            if !self.stopped.contains_key(&id)
                && let Some(signal) = self.stop_one(id)?
            {
                self.stopped.insert(id, signal);
            }
        }
        Ok(self.stopped.len() > before)
    }

    fn stop_one(&self, id: u32) -> Result<Option<i32>, String> {
        if is_zombie(self.pid, id) {
            return Ok(None);
        }
        if let Err(error) = call(libc::PTRACE_SEIZE, id, 0) {
            return match error.raw_os_error() {
                Some(libc::ESRCH) => Ok(None),
                _ => Err(refused(self.pid, &error)),
            };
        }
        if call(libc::PTRACE_INTERRUPT, id, 0).is_err() {
            return Ok(None);
        }
        let options = WaitOptions::NOHANG | WaitOptions::from_bits_retain(libc::__WALL as u32);
        let since = Instant::now();
        loop {
            match waitpid(Pid::from_raw(id as i32), options) {
                Ok(Some((_, status))) => {
                    // Other stops are marked above the signal's byte.
                    let is_signal = status.as_raw() >> 16 == 0;
                    let signal = status.stopping_signal();
                    // Not a thread that SIGSTOP or the like had stopped.
                    if !is_signal && signal == Some(libc::SIGTRAP) {
                        restart::restart(id);
                    }
                    return Ok(signal.map(|signal| if is_signal { signal } else { 0 }));
                }
                Err(_) => return Ok(None),
                // The drop lets the others go on; our end, this one.
                Ok(None) if since.elapsed() > PATIENCE => {
                    return Err(format!(
                        "process {}: its thread {id} does not stop; it waits for a device or another file system: try again later",
                        self.pid
                    ));
                }
                Ok(None) => sleep(Duration::from_micros(50)),
            }
        }
    }

    /// Memory may change meanwhile.
    ///
    /// # Errors
    /// The system's error, with a remedy.
    pub fn watch(pid: u32) -> Result<Self, String> {
        Ok(Self::new(pid, open(pid, false)?, maps(pid)?))
    }

    pub(crate) fn running(pid: u32) -> Result<Self, String> {
        Ok(Self::new(pid, open(pid, true)?, maps(pid)?))
    }

    /// Restarts the system call in which each thread of this name sleeps.
    pub(crate) fn interrupt(&self, name: &str) {
        let comm = |id: &u32| text(&format!("/proc/{}/task/{id}/comm", self.pid));
        let is_meant = |id: &u32| comm(id).is_some_and(|comm| comm.trim_end() == name);
        for id in tasks(self.pid).unwrap_or_default().into_iter().filter(is_meant) {
            if let Ok(Some(signal)) = self.stop_one(id) {
                let _ = call(libc::PTRACE_DETACH, id, signal as usize);
            }
        }
    }

    pub(crate) fn write(&self, at: u64, bytes: &[u8]) -> Result<(), String> {
        let local = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        let remote = libc::iovec { iov_base: at as *mut _, iov_len: bytes.len() };
        // SAFETY: reads our bytes; writes in the other process.
        let written = unsafe { libc::process_vm_writev(self.pid as i32, &local, 1, &remote, 1, 0) };
        if written == bytes.len() as isize {
            return Ok(());
        }
        Err(refused(self.pid, &io::Error::last_os_error()))
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.let_go();
    }
}

impl Memory for Live {
    fn read(&self, at: u64, into: &mut [u8]) -> usize {
        let mut done = 0;
        while done < into.len() {
            match self.memory.read_at(&mut into[done..], at + done as u64) {
                Ok(0) | Err(_) => break,
                Ok(n) => done += n,
            }
        }
        done
    }

    fn maps(&self) -> &[Map] {
        &self.maps
    }

    fn threads(&self) -> &[Thread] {
        &self.threads
    }

    fn name(&self) -> String {
        format!("process {}", self.pid)
    }

    fn pid(&self) -> u32 {
        self.pid
    }

    fn root(&self) -> Option<PathBuf> {
        Some(root_of(self.pid))
    }

    fn auxiliary(&self) -> Vec<u8> {
        fs::read(format!("/proc/{}/auxv", self.pid)).unwrap_or_default()
    }

    fn is_unchanged(&self) -> bool {
        !self.has_changed && (self.asleep.is_empty() || asleep(self.pid).as_ref() == Some(&self.asleep))
    }

    fn interrupted(&self) -> usize {
        self.threads.iter().filter(|thread| restart::is_interrupted(thread)).count()
    }

    fn left_out(&self) -> HashSet<u64> {
        let text = fs::read(format!("/proc/{}/smaps", self.pid)).unwrap_or_default();
        let mut start = 0;
        let left_out = |line: &str| {
            start = parse(line).map_or(start, |map| map.start);
            let flags = line.strip_prefix("VmFlags:")?;
            flags.split_whitespace().any(|flag| flag == "dd").then_some(start)
        };
        String::from_utf8_lossy(&text).lines().filter_map(left_out).collect()
    }
}

fn call(request: libc::c_uint, id: u32, data: usize) -> io::Result<()> {
    // SAFETY: these requests touch no memory of ours.
    match unsafe { libc::ptrace(request, id as i32, null_mut::<u8>(), data) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

fn registers(id: u32) -> Thread {
    let set = |which: u32| {
        let mut bytes = vec![0u8; MOST_REGISTERS];
        let mut place = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        // SAFETY: the kernel writes at most the length, and changes it to what it wrote.
        let got = unsafe { libc::ptrace(libc::PTRACE_GETREGSET, id as i32, which as usize, &mut place) };
        bytes.truncate(if got < 0 { 0 } else { place.iov_len });
        bytes
    };
    let sets = SETS.map(|which| (which, set(which)));
    Thread::new(id, sets.into_iter().filter(|(which, bytes)| *which == NT_PRSTATUS || !bytes.is_empty()).collect())
}

/// A process's name may hold any bytes.
pub(crate) fn text(path: &str) -> Option<String> {
    fs::read(path).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn tasks(pid: u32) -> io::Result<Vec<u32>> {
    let entries = fs::read_dir(format!("/proc/{pid}/task"))?.flatten();
    Ok(entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}

fn asleep(pid: u32) -> Option<BTreeMap<u32, u64>> {
    let one = |id: u32| {
        let status = text(&format!("/proc/{pid}/task/{id}/status"))?;
        switches(&status).map(|switches| (id, switches))
    };
    tasks(pid).ok()?.into_iter().map(one).collect()
}

fn switches(status: &str) -> Option<u64> {
    let value = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')).map(str::trim);
    let count = |key: &str| value(key)?.parse::<u64>().ok();
    value("State")?.starts_with('S').then_some(())?;
    Some(count("voluntary_ctxt_switches")? + count("nonvoluntary_ctxt_switches")?)
}

pub(crate) fn is_zombie(pid: u32, id: u32) -> bool {
    matches!(state(pid, id), None | Some('Z' | 'X'))
}

pub fn is_running(pid: u32) -> bool {
    !is_zombie(pid, pid)
}

pub(crate) fn is_stopped(pid: u32) -> bool {
    matches!(state(pid, pid), Some('T' | 't'))
}

fn state(pid: u32, id: u32) -> Option<char> {
    let stat = text(&format!("/proc/{pid}/task/{id}/stat"))?;
    // The name in brackets may hold anything.
    stat.rsplit(')').next()?.trim_start().chars().next()
}

/// Whether `/proc` has the numbers of this process's PID namespace.
pub fn has_own_numbers() -> bool {
    let own = fs::read_link("/proc/self").ok().and_then(|own| own.to_str()?.parse().ok());
    own == Some(std::process::id())
}

/// The end of a sentence about a number that may be another namespace's.
fn elsewhere() -> &'static str {
    if has_own_numbers() {
        return "";
    }
    ". /proc has the numbers of another PID namespace than this shell's: take the number from `ps`, or mount the \
     namespace's own by `mount -t proc proc /proc`"
}

fn open(pid: u32, write: bool) -> Result<File, String> {
    if !fs::exists(format!("/proc/{pid}")).unwrap_or(false) {
        return Err(format!(
            "there is no process {pid}; `pgrep -a NAME` finds the number of a program's process. Inside a container its \
             processes have other numbers than outside{}",
            elsewhere()
        ));
    }
    if pid == std::process::id() {
        return Err(format!("process {pid} is this program itself; give the number of another"));
    }
    let path = format!("/proc/{pid}/mem");
    fs::OpenOptions::new().read(true).write(write).open(path).map_err(|error| refused(pid, &error))
}

pub(crate) fn refused(pid: u32, error: &io::Error) -> String {
    let tracer = text(&format!("/proc/{pid}/status")).and_then(|status| {
        let line = status.lines().find_map(|line| line.strip_prefix("TracerPid:"))?;
        line.trim().parse::<u32>().ok().filter(|tracer| *tracer != 0)
    });
    if let Some(tracer) = tracer {
        return format!("process {pid} is stopped by process {tracer} already, a debugger perhaps; end that first");
    }
    match error.kind() {
        io::ErrorKind::PermissionDenied => format!(
            "process {pid} must not be read ({error}): run this as its user or as root; where /proc/sys/kernel/yama/ptrace_scope \
             is above 0, as root, or after `echo 0 | sudo tee /proc/sys/kernel/yama/ptrace_scope`; in a container it needs \
             CAP_SYS_PTRACE{}",
            elsewhere()
        ),
        io::ErrorKind::NotFound => format!("process {pid} has ended"),
        _ if error.raw_os_error() == Some(libc::ESRCH) && is_zombie(pid, pid) => format!("process {pid} has ended"),
        _ if error.raw_os_error() == Some(libc::ESRCH) => no_memory(pid),
        _ => format!("process {pid} cannot be read: {error}"),
    }
}

fn no_memory(pid: u32) -> String {
    format!("process {pid} has no memory: it has ended, or is a thread of the kernel{}", elsewhere())
}

pub(crate) fn maps(pid: u32) -> Result<Vec<Map>, String> {
    let text = fs::read(format!("/proc/{pid}/maps")).map_err(|error| refused(pid, &error))?;
    let text = String::from_utf8_lossy(&text);
    let all: Vec<Map> = text.lines().filter_map(parse).collect();
    if all.is_empty() {
        return Err(no_memory(pid));
    }
    Ok(all)
}

pub(crate) fn parse(line: &str) -> Option<Map> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
    let access = fields.next()?.as_bytes();
    let offset = u64::from_str_radix(fields.next()?, 16).ok()?;
    let path = fields.nth(2).unwrap_or_default().trim_start();
    // Anonymous memory may have a name, by the option `name_mappings` or of the C library.
    let path = if path.starts_with("[anon:") { "" } else { path }.to_owned();
    let has = |at: usize, letter: u8| access.get(at) == Some(&letter);
    Some(Map { start, end, readable: has(0, b'r'), writable: has(1, b'w'), executable: has(2, b'x'), offset, path })
}

#[cfg(test)]
mod tests;
