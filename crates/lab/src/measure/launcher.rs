//! The small process between this one and the command.
//!
//! **What.** A process's peak includes what it had before `exec`: a copy of its parent's memory, or
//! the parent's peak. So this program starts itself again as [`NAME`], which stays small: a
//! function before `main` starts the command, waits, and reports on a pipe.
//!
//! **State.** Arguments: [`NAME`], the CPUs' numbers with commas (empty: any), a number, that many
//! `KEY=VALUE`, then the command. Standard output is the pipe for [`Report`]s. SIGTERM kills the
//! command's process group, the end of the parent all.
//!
//! **Unsafe.** Forks, executes and waits by the C library; std cannot before `main`.

use libc::{c_char, c_int, c_void, pid_t};
use std::ffi::CStr;
use std::mem::zeroed;
use std::ptr::null_mut;

pub const NAME: &str = "craton-lab-launcher";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// The command's process exists, with this id.
    Started(u32),
    /// The command cannot be executed, for `errno`'s reason.
    CannotExecute(i32),
    Ended(Ended),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    pub wait_status: i32,
    pub wall_ns: u64,
    /// With descendants that ended before it.
    pub user_us: u64,
    pub sys_us: u64,
    pub peak_rss_kib: u64,
    pub minor_faults: u64,
    pub major_faults: u64,
}

impl Report {
    const WORDS: usize = 8;
    pub const BYTES: usize = Self::WORDS * 8;

    fn words(self) -> [u64; Self::WORDS] {
        let mut words = [0; Self::WORDS];
        match self {
            Self::Started(pid) => words[..2].copy_from_slice(&[1, u64::from(pid)]),
            Self::CannotExecute(errno) => words[..2].copy_from_slice(&[2, errno as u64]),
            Self::Ended(e) => {
                words = [
                    3,
                    e.wait_status as u64,
                    e.wall_ns,
                    e.user_us,
                    e.sys_us,
                    e.peak_rss_kib,
                    e.minor_faults,
                    e.major_faults,
                ];
            }
        }
        words
    }

    pub fn parse(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let word = |i: usize| u64::from_ne_bytes(std::array::from_fn(|b| bytes[i * 8 + b]));
        match word(0) {
            1 => Some(Self::Started(word(1) as u32)),
            2 => Some(Self::CannotExecute(word(1) as i32)),
            3 => Some(Self::Ended(Ended {
                wait_status: word(1) as i32,
                wall_ns: word(2),
                user_us: word(3),
                sys_us: word(4),
                peak_rss_kib: word(5),
                minor_faults: word(6),
                major_faults: word(7),
            })),
            _ => None,
        }
    }

    fn send(self, pipe: c_int) {
        let words = self.words();
        // SAFETY: a live array of this size. A closed pipe has no reader to inform.
        unsafe { libc::write(pipe, words.as_ptr().cast::<c_void>(), Self::BYTES) };
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn(c_int, *const *const c_char, *const *const c_char) = before_main;

pub fn keep() {
    std::hint::black_box(&BEFORE_MAIN);
}

extern "C" fn before_main(count: c_int, arguments: *const *const c_char, _environment: *const *const c_char) {
    // Only Linux's glibc passes main's arguments; elsewhere the registers hold garbage.
    if count < 3 || arguments.is_null() {
        return;
    }
    // SAFETY: main's vector: `count` C strings and a null.
    let name = unsafe { CStr::from_ptr(*arguments) };
    if name.to_bytes() == NAME.as_bytes() {
        // SAFETY: as above; no other thread before main.
        unsafe {
            stay_on(CStr::from_ptr(*arguments.add(1)).to_bytes());
            launch(arguments.add(2))
        }
    }
}

fn stay_on(list: &[u8]) {
    let number = |text: &[u8]| text.iter().fold(0usize, |n, digit| n * 10 + usize::from(digit - b'0'));
    let processors = || list.split(|byte| *byte == b',').filter(|text| !text.is_empty()).map(number);
    if processors().next().is_none() {
        return;
    }
    // SAFETY: zeros are an empty cpu_set_t; only numbers that fit are set. On failure the process
    // stays where the caller may run.
    unsafe {
        let mut set: libc::cpu_set_t = zeroed();
        processors().filter(|n| *n < libc::CPU_SETSIZE as usize).for_each(|n| libc::CPU_SET(n, &mut set));
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
}

/// # Safety
/// `arguments` is a null-terminated vector of C strings as the head says; this is the only thread.
unsafe fn launch(arguments: *const *const c_char) -> ! {
    // SAFETY: live arguments; the signal set is initialized before use.
    let (set, old, pipe) = unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        // Orphans of the command become our children.
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        let (mut set, mut old): (libc::sigset_t, libc::sigset_t) = (zeroed(), zeroed());
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGCHLD);
        libc::sigaddset(&mut set, libc::SIGTERM);
        libc::sigprocmask(libc::SIG_BLOCK, &set, &mut old);
        (set, old, libc::fcntl(1, libc::F_DUPFD_CLOEXEC, 3))
    };
    let start_ns = now_ns();
    // SAFETY: the only thread; the child is a copy of it.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        // SAFETY: by the contract.
        unsafe { execute(arguments, &old, pipe) }
    }
    if pid < 0 {
        Report::CannotExecute(errno()).send(pipe);
    } else {
        // SAFETY: not reaped yet. The child does the same; the first creates the group.
        unsafe { libc::setpgid(pid, pid) };
        Report::Started(pid as u32).send(pipe);
        Report::Ended(wait(pid, &set, start_ns)).send(pipe);
    }
    // SAFETY: no handler is needed.
    unsafe { libc::_exit(0) }
}

/// # Safety
/// As [`launch`], in its child.
unsafe fn execute(arguments: *const *const c_char, mask: &libc::sigset_t, pipe: c_int) -> ! {
    // SAFETY: the first argument is the number of variables; the command is behind them, up to the
    // null. putenv keeps strings, which live as long as the process.
    unsafe {
        libc::setpgid(0, 0);
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        let variables = usize::try_from(libc::atoi(*arguments)).unwrap_or(0);
        for i in 0..variables {
            libc::putenv((*arguments.add(1 + i)).cast_mut());
        }
        let nowhere = libc::open(c"/dev/null".as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        libc::dup2(nowhere, 1);
        libc::sigprocmask(libc::SIG_SETMASK, mask, null_mut());
        let command = arguments.add(1 + variables);
        libc::execvp(*command, command);
        Report::CannotExecute(errno()).send(pipe);
        libc::_exit(127)
    }
}

fn wait(pid: pid_t, set: &libc::sigset_t, start_ns: u64) -> Ended {
    let mut ended = Ended::default();
    loop {
        // SAFETY: zeros are a valid siginfo_t; WNOWAIT leaves the child unreaped.
        let ready = unsafe {
            let mut info: libc::siginfo_t = zeroed();
            libc::waitid(libc::P_ALL, 0, &mut info, libc::WEXITED | libc::WNOHANG | libc::WNOWAIT);
            info.si_pid()
        };
        if ready == pid {
            break;
        } else if ready != 0 {
            reap(ready, &mut ended);
        // SAFETY: both signals are blocked; a null info is allowed.
        } else if unsafe { libc::sigwaitinfo(set, null_mut()) } == libc::SIGTERM {
            kill_group(pid);
        }
    }
    ended.wall_ns = now_ns() - start_ns;
    kill_group(pid);
    ended.wait_status = reap(pid, &mut ended);
    kill_rest();
    ended
}

/// Processes that left the group are our children, or become so by the death of one.
fn kill_rest() {
    for _ in 0..1000 {
        // SAFETY: reaps any ended child, waits for none.
        if unsafe { libc::waitpid(-1, null_mut(), libc::WNOHANG) } < 0 {
            return;
        }
        for pid in super::sample::children(std::process::id()) {
            // SAFETY: an unreaped child keeps its number.
            unsafe { libc::kill(pid as pid_t, libc::SIGKILL) };
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// The leader is unreaped: no other group has the number.
fn kill_group(leader: pid_t) {
    // SAFETY: touches no memory.
    unsafe { libc::kill(-leader, libc::SIGKILL) };
}

fn reap(pid: pid_t, into: &mut Ended) -> c_int {
    let mut status = 0;
    // SAFETY: zeros are a valid rusage; both places are live.
    let usage = unsafe {
        let mut usage: libc::rusage = zeroed();
        libc::wait4(pid, &mut status, 0, &mut usage);
        usage
    };
    let micros = |t: libc::timeval| t.tv_sec as u64 * 1_000_000 + t.tv_usec as u64;
    into.user_us += micros(usage.ru_utime);
    into.sys_us += micros(usage.ru_stime);
    into.peak_rss_kib = into.peak_rss_kib.max(usage.ru_maxrss as u64);
    into.minor_faults += usage.ru_minflt as u64;
    into.major_faults += usage.ru_majflt as u64;
    status
}

fn now_ns() -> u64 {
    // SAFETY: zeros are a valid timespec.
    let time = unsafe {
        let mut time: libc::timespec = zeroed();
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time);
        time
    };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn errno() -> c_int {
    // SAFETY: the thread's own place.
    unsafe { *libc::__errno_location() }
}

#[cfg(test)]
mod tests;
