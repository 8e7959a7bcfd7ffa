//! Programs whose allocator is refused by the kernel: a seccomp filter asks a supervisor about each
//! of the [`CALLS`], in all processes of a command, and the supervisor fails the n-th of a kind
//! that the allocator's library makes.
//!
//! A call is the library's if it is made there, or in a function of the C library that it called:
//! the word at the stack pointer is then an address in the library. For a new thread, such an
//! address is in the last KiB of the stack. The library's place is read once from `/proc/PID/maps`,
//! and forgotten at `execve`.
//!
//! **Unsafe.** seccomp, messages with a file descriptor, and reads of another process's stack.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::mem::{size_of, zeroed};
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Name, number, error to return.
pub type Call = (&'static str, i64, i32);

/// Locks (`futex`) and exits cannot fail.
pub const CALLS: &[Call] = &[
    ("mmap", libc::SYS_mmap, libc::ENOMEM),
    ("munmap", libc::SYS_munmap, libc::ENOMEM),
    ("mremap", libc::SYS_mremap, libc::ENOMEM),
    ("mprotect", libc::SYS_mprotect, libc::ENOMEM),
    ("madvise", libc::SYS_madvise, libc::ENOMEM),
    ("mincore", libc::SYS_mincore, libc::EAGAIN),
    ("openat", libc::SYS_openat, libc::EMFILE),
    ("read", libc::SYS_read, libc::EIO),
    ("pread64", libc::SYS_pread64, libc::EIO),
    ("write", libc::SYS_write, libc::ENOSPC),
    ("ioctl", libc::SYS_ioctl, libc::ENOTTY),
    ("clone3", libc::SYS_clone3, libc::EAGAIN),
    ("prctl", libc::SYS_prctl, libc::EINVAL),
    ("prlimit64", libc::SYS_prlimit64, libc::EPERM),
    ("sched_getaffinity", libc::SYS_sched_getaffinity, libc::EINVAL),
    ("sysinfo", libc::SYS_sysinfo, libc::EPERM),
    ("getrandom", libc::SYS_getrandom, libc::ENOSYS),
    ("membarrier", libc::SYS_membarrier, libc::ENOMEM),
    ("rt_sigprocmask", libc::SYS_rt_sigprocmask, libc::EINVAL),
    ("memfd_create", libc::SYS_memfd_create, libc::EMFILE),
    ("ftruncate", libc::SYS_ftruncate, libc::ENOSPC),
];

/// Calls of this index in [`CALLS`], counted from 1.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    pub call: usize,
    pub first: u64,
    pub last: u64,
}

#[derive(Debug)]
pub struct Run {
    /// None: too long.
    pub status: Option<ExitStatus>,
    pub stdout: Vec<u8>,
    pub stderr: String,
    pub peak_rss_bytes: u64,
    pub counts: Vec<u64>,
}

pub struct Place<'a> {
    pub directory: &'a Path,
    pub variables: &'a [(OsString, OsString)],
    pub library: &'a Path,
}

pub fn run(command: &[OsString], place: &Place<'_>, fault: Option<Fault>, limit: Duration) -> Result<Run, String> {
    let (ours, theirs) = UnixStream::pair().map_err(|e| format!("cannot make a pair of sockets: {e}"))?;
    let outputs = ["fault.stdout", "fault.stderr"].map(|name| place.directory.join(name));
    let filter = filter();
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let library = place.library.canonicalize().unwrap_or_else(|_| place.library.to_owned());
        let supervisor = scope.spawn(|| {
            let listener = receive(&ours)?;
            Some(
                Supervisor { library, fault, counts: vec![0; CALLS.len()], places: HashMap::new() }
                    .serve(&listener, &ends),
            )
        });
        let child = start(command, place, &outputs, &filter, theirs);
        let waited = child.map(|child| wait(&child, limit));
        ends.store(true, Relaxed);
        let counts = supervisor.join().unwrap_or_default().unwrap_or_default();
        let (status, peak_rss_bytes) = waited?;
        let [stdout, stderr] = outputs.map(|path| fs::read(path).unwrap_or_default());
        let stderr = String::from_utf8_lossy(&stderr).into_owned();
        Ok(Run { status, stdout, stderr, peak_rss_bytes, counts })
    })
}

fn start(
    command: &[OsString],
    place: &Place<'_>,
    [stdout, stderr]: &[PathBuf; 2],
    filter: &[libc::sock_filter],
    socket: UnixStream,
) -> Result<Child, String> {
    let (program, arguments) = command.split_first().ok_or("there is no command")?;
    let file = |path: &PathBuf| File::create(path).map_err(|e| format!("cannot write {}: {e}", path.display()));
    let mut command = Command::new(program);
    command.args(arguments).envs(place.variables.iter().map(|(key, value)| (key, value)));
    command.current_dir(place.directory).process_group(0).stdin(Stdio::null());
    command.stdout(file(stdout)?).stderr(file(stderr)?);
    let (filter, fd) = (filter.to_vec(), socket.as_raw_fd());
    // SAFETY: `install` and `send` only make system calls on existing memory.
    unsafe { command.pre_exec(move || install(&filter).and_then(|listener| send(fd, listener))) };
    let program = program.to_string_lossy();
    command.spawn().map_err(|e| match e.raw_os_error() {
        Some(libc::ENOENT) => format!("{program} is not there"),
        _ => format!("seccomp refused: the kernel supervises no system calls of {program} here ({e})"),
    })
}

/// Kills the group after `limit`.
fn wait(child: &Child, limit: Duration) -> (Option<ExitStatus>, u64) {
    let (pid, end) = (child.id() as i32, Instant::now() + limit);
    let mut ended = None;
    while ended.is_none() && Instant::now() < end {
        ended = reap(pid, libc::WNOHANG);
        if ended.is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let is_late = ended.is_none();
    // SAFETY: the group of this module's child.
    unsafe { libc::kill(-pid, libc::SIGKILL) };
    let (status, peak) = ended.or_else(|| reap(pid, 0)).unwrap_or_default();
    ((!is_late).then(|| ExitStatus::from_raw(status)), peak)
}

fn reap(pid: i32, flags: i32) -> Option<(i32, u64)> {
    let mut status = 0;
    // SAFETY: zeros are valid; a local variable.
    unsafe {
        let mut usage: libc::rusage = zeroed();
        let reaped = libc::wait4(pid, &raw mut status, flags, &raw mut usage);
        (reaped == pid).then_some((status, usage.ru_maxrss as u64 * 1024))
    }
}

/// The calls and `execve` go to the supervisor.
fn filter() -> Vec<libc::sock_filter> {
    let statement = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let ask = libc::SECCOMP_RET_USER_NOTIF;
    // The number is the first field.
    let mut filter = vec![statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0)];
    for number in CALLS.iter().map(|call| call.1).chain([libc::SYS_execve]) {
        let jump = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
        filter.push(libc::sock_filter { code: jump as u16, jt: 0, jf: 1, k: number as u32 });
        filter.push(statement(libc::BPF_RET | libc::BPF_K, ask));
    }
    filter.push(statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW));
    filter
}

fn install(filter: &[libc::sock_filter]) -> io::Result<RawFd> {
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    let (mode, flags) = (libc::SECCOMP_SET_MODE_FILTER, libc::SECCOMP_FILTER_FLAG_NEW_LISTENER);
    // SAFETY: the kernel reads the slice.
    let listener = unsafe {
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 {
            return Err(io::Error::last_os_error());
        }
        libc::syscall(libc::SYS_seccomp, mode, flags, &raw const program)
    };
    if listener < 0 { Err(io::Error::last_os_error()) } else { Ok(listener as RawFd) }
}

/// For one descriptor, aligned for the kernel.
#[repr(C, align(8))]
struct Control([u8; 32]);

fn message<'a>(part: &'a mut libc::iovec, control: &'a mut Control) -> libc::msghdr {
    // SAFETY: zeros and null pointers are valid.
    let mut message: libc::msghdr = unsafe { zeroed() };
    (message.msg_iov, message.msg_iovlen) = (part, 1);
    message.msg_control = control.0.as_mut_ptr().cast();
    // SAFETY: computes a length.
    message.msg_controllen = unsafe { libc::CMSG_SPACE(size_of::<RawFd>() as u32) } as usize;
    message
}

fn send(socket: RawFd, fd: RawFd) -> io::Result<()> {
    let mut byte = 0u8;
    let mut part = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let mut control = Control([0; 32]);
    let message = message(&mut part, &mut control);
    // SAFETY: room for one header and a descriptor.
    let sent = unsafe {
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(size_of::<RawFd>() as u32) as usize;
        libc::CMSG_DATA(header).cast::<RawFd>().write_unaligned(fd);
        libc::sendmsg(socket, &raw const message, 0)
    };
    if sent == 1 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// `None`: closed without a listener.
fn receive(socket: &UnixStream) -> Option<OwnedFd> {
    let mut byte = 0u8;
    let mut part = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let mut control = Control([0; 32]);
    let mut message = message(&mut part, &mut control);
    // SAFETY: room for one descriptor, which this process then owns.
    unsafe {
        if libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC) != 1 {
            return None;
        }
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (!header.is_null()).then(|| OwnedFd::from_raw_fd(libc::CMSG_DATA(header).cast::<RawFd>().read_unaligned()))
    }
}

struct Supervisor {
    library: PathBuf,
    fault: Option<Fault>,
    counts: Vec<u64>,
    places: HashMap<u32, Range<u64>>,
}

impl Supervisor {
    fn serve(mut self, listener: &OwnedFd, ends: &AtomicBool) -> Vec<u64> {
        let fd = listener.as_raw_fd();
        while !ends.load(Relaxed) {
            let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
            // SAFETY: one local structure.
            unsafe { libc::poll(&raw mut poll, 1, 20) };
            if poll.revents & libc::POLLIN != 0 {
                self.answer(fd);
            } else if poll.revents != 0 {
                break;
            }
        }
        self.counts
    }

    fn answer(&mut self, fd: RawFd) {
        // SAFETY: zeroed as the kernel requires.
        unsafe {
            let mut asked: libc::seccomp_notif = zeroed();
            if libc::ioctl(fd, libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut asked) != 0 {
                return;
            }
            let mut answer: libc::seccomp_notif_resp = zeroed();
            answer.id = asked.id;
            match self.refuses(&asked) {
                Some(error) => answer.error = -error,
                None => answer.flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32,
            }
            libc::ioctl(fd, libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const answer);
        }
    }

    fn refuses(&mut self, asked: &libc::seccomp_notif) -> Option<i32> {
        let number = i64::from(asked.data.nr);
        if number == libc::SYS_execve {
            self.places.remove(&asked.pid);
            return None;
        }
        let call = CALLS.iter().position(|call| call.1 == number)?;
        if !self.is_of_library(asked) {
            return None;
        }
        self.counts[call] += 1;
        let refused = self.fault.filter(|f| f.call == call && (f.first..=f.last).contains(&self.counts[call]));
        refused.map(|_| CALLS[call].2)
    }

    fn is_of_library(&mut self, asked: &libc::seccomp_notif) -> bool {
        let Some(place) = self.place(asked.pid) else { return false };
        if place.contains(&asked.data.instruction_pointer) {
            return true;
        }
        let is_new_thread = i64::from(asked.data.nr) == libc::SYS_clone3;
        let mut words = [0u64; 128];
        let words = &mut words[..if is_new_thread { 128 } else { 1 }];
        stack(asked.pid, words).is_some_and(|()| words.iter().any(|word| place.contains(word)))
    }

    fn place(&mut self, pid: u32) -> Option<Range<u64>> {
        if let Some(place) = self.places.get(&pid) {
            return Some(place.clone());
        }
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
        let ours = maps.lines().filter(|line| line.ends_with(&*self.library.to_string_lossy()));
        let bounds = ours.filter_map(|line| line.split(' ').next()?.split_once('-'));
        let number = |text| u64::from_str_radix(text, 16).ok();
        let place = bounds.filter_map(|(from, to)| Some(number(from)?..number(to)?)).reduce(|a, b| a.start..b.end)?;
        self.places.insert(pid, place.clone());
        Some(place)
    }
}

fn stack(pid: u32, words: &mut [u64]) -> Option<()> {
    let call = fs::read_to_string(format!("/proc/{pid}/syscall")).ok()?;
    let at = call.split_whitespace().rev().nth(1)?.trim_start_matches("0x");
    let bytes = size_of_val(words);
    let here = libc::iovec { iov_base: words.as_mut_ptr().cast(), iov_len: bytes };
    let there = libc::iovec { iov_base: usize::from_str_radix(at, 16).ok()? as *mut _, iov_len: bytes };
    // SAFETY: writes into `words`, within its size.
    let read = unsafe { libc::process_vm_readv(pid as i32, &raw const here, 1, &raw const there, 1, 0) };
    (read == bytes as isize).then_some(())
}

#[cfg(test)]
mod tests;
