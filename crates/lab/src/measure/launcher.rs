//! The small process between this one and the command.
//!
//! **What.** The kernel counts in a process's peak resident set what the process had before `exec`: of a child that
//! `fork` made, that is a copy of its parent's memory, and of one that `vfork` or `posix_spawn` made, the parent's peak
//! itself. A small command started from a large process would therefore seem large. So this program starts itself
//! again under the name [`NAME`], as a process that is small and stays so: it makes the command's process, waits for
//! it, and reports on a pipe. It holds the clock too, so that what the parent does meanwhile is not in the wall time.
//!
//! A function that the dynamic linker calls before `main` sees the name and never reaches `main`: any program that
//! measures, a test too, is its own launcher without a word in its `main`.
//!
//! **State.** Arguments: [`NAME`], the processors to stay on as numbers with commas between (or nothing for any), a
//! number, as many `KEY=VALUE` for the command alone, then the command. Standard output is the pipe for [`Report`]s; the
//! command gets standard input and error as they are, and /dev/null as output. Standard error is not touched. SIGTERM
//! asks for the end: the command's process group is killed.
//!
//! **Failure.** A command that cannot be executed is a report. Without a single report the launcher itself failed. If the
//! parent ends, the launcher is killed, and with it the command.
//!
//! **Not here.** Descendants that leave the command's process group are waited for only while the command lasts.
//!
//! **Unsafe.** Forks, executes and waits by the C library, which has no safe form before `main`.

use libc::{c_char, c_int, c_void, pid_t};
use std::ffi::CStr;
use std::mem::zeroed;
use std::ptr::null_mut;

/// What the launcher is called, as its first argument.
pub const NAME: &str = "craton-lab-launcher";

/// What the launcher says on its pipe, each in one write of [`Report::BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// The command's process exists.
    Started,
    /// It cannot be executed, for the reason that `errno` gives.
    CannotExecute(i32),
    /// It has ended.
    Ended(Ended),
}

/// What the kernel says of a command that has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// As `wait` gives it.
    pub wait_status: i32,
    /// From before its process was made to its end.
    pub wall_ns: u64,
    /// Processor time in user mode of it and of its descendants that ended before it, in microseconds.
    pub user_us: u64,
    /// The same in the kernel.
    pub sys_us: u64,
    /// Largest resident set of one of these processes, in KiB.
    pub peak_rss_kib: u64,
    /// Minor page faults of all of them.
    pub minor_faults: u64,
    /// Major page faults of all of them.
    pub major_faults: u64,
}

impl Report {
    const WORDS: usize = 8;
    /// Length of a report on the pipe.
    pub const BYTES: usize = Self::WORDS * 8;

    fn words(self) -> [u64; Self::WORDS] {
        let mut words = [0; Self::WORDS];
        match self {
            Self::Started => words[0] = 1,
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

    /// The report in `bytes`; none if there is no such report.
    pub fn parse(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let word = |i: usize| u64::from_ne_bytes(std::array::from_fn(|b| bytes[i * 8 + b]));
        match word(0) {
            1 => Some(Self::Started),
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
        // SAFETY: `words` is a live array of so many bytes. If the pipe is closed, nobody is left to be told.
        unsafe { libc::write(pipe, words.as_ptr().cast::<c_void>(), Self::BYTES) };
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn(c_int, *const *const c_char, *const *const c_char) = before_main;

/// Makes sure that the linker keeps the function before `main`: who calls this, links it.
pub fn keep() {
    std::hint::black_box(&BEFORE_MAIN);
}

extern "C" fn before_main(count: c_int, arguments: *const *const c_char, _environment: *const *const c_char) {
    // A C library that passes no arguments here leaves anything in the registers, but Linux's glibc passes main's.
    if count < 3 || arguments.is_null() {
        return;
    }
    // SAFETY: `arguments` is main's vector, which has `count` C strings and a null behind them.
    let name = unsafe { CStr::from_ptr(*arguments) };
    if name.to_bytes() == NAME.as_bytes() {
        // SAFETY: as above; no other thread runs before main.
        unsafe {
            stay_on(CStr::from_ptr(*arguments.add(1)).to_bytes());
            launch(arguments.add(2))
        }
    }
}

/// Keeps this process, and so the command, on the processors of a list such as `0,2`; on any if the list is empty.
fn stay_on(list: &[u8]) {
    let number = |text: &[u8]| text.iter().fold(0usize, |n, digit| n * 10 + usize::from(digit - b'0'));
    let processors = || list.split(|byte| *byte == b',').filter(|text| !text.is_empty()).map(number);
    if processors().next().is_none() {
        return;
    }
    // SAFETY: zeros are an empty cpu_set_t, in which each number that fits is set. A failure leaves the process where it
    // may run, which the caller has checked.
    unsafe {
        let mut set: libc::cpu_set_t = zeroed();
        processors().filter(|n| *n < libc::CPU_SETSIZE as usize).for_each(|n| libc::CPU_SET(n, &mut set));
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
}

/// Starts the command, waits for it and leaves.
///
/// # Safety
/// `arguments` is a vector of C strings, ended by null, as the module's head describes; this is the only thread.
unsafe fn launch(arguments: *const *const c_char) -> ! {
    // SAFETY: calls of the C library with live arguments; the signal set is filled in before it is used.
    let (set, old, pipe) = unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        // What the command leaves behind becomes a child of this process, and is reaped and sampled here.
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
    // SAFETY: the only thread; the child goes on as a copy of it.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        // SAFETY: by the contract.
        unsafe { execute(arguments, &old, pipe) }
    }
    if pid < 0 {
        Report::CannotExecute(errno()).send(pipe);
    } else {
        // SAFETY: the child is not waited for yet. It does the same: whichever comes first makes the group.
        unsafe { libc::setpgid(pid, pid) };
        Report::Started.send(pipe);
        Report::Ended(wait(pid, &set, start_ns)).send(pipe);
    }
    // SAFETY: leaves without the functions at exit, none of which belongs to the launcher's work.
    unsafe { libc::_exit(0) }
}

/// Becomes the command.
///
/// # Safety
/// As for [`launch`], in its child.
unsafe fn execute(arguments: *const *const c_char, mask: &libc::sigset_t, pipe: c_int) -> ! {
    // SAFETY: the first argument is the number of variables, and that many follow; the command is behind them, up to the
    // null. The strings live as long as the process, as putenv asks.
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

/// Waits for the command, and for what it leaves behind in the meantime.
fn wait(pid: pid_t, set: &libc::sigset_t, start_ns: u64) -> Ended {
    let mut ended = Ended::default();
    loop {
        // SAFETY: zeros are a valid siginfo_t, which the call fills in; WNOWAIT leaves the child as it is.
        let ready = unsafe {
            let mut info: libc::siginfo_t = zeroed();
            libc::waitid(libc::P_ALL, 0, &mut info, libc::WEXITED | libc::WNOHANG | libc::WNOWAIT);
            info.si_pid()
        };
        if ready == pid {
            break;
        } else if ready != 0 {
            reap(ready, &mut ended);
        // SAFETY: both signals of the set are blocked; the information about the signal is not asked for.
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

/// Kills what left the group: orphans of the command are children of this process, which is their subreaper, and those
/// of a killed one become so in turn.
fn kill_rest() {
    // Bounded, for a program that starts others faster than they are killed.
    for _ in 0..1000 {
        // SAFETY: a pure system call; any child that has ended is reaped, none is waited for.
        if unsafe { libc::waitpid(-1, null_mut(), libc::WNOHANG) } < 0 {
            return;
        }
        for pid in super::sample::children(std::process::id()) {
            // SAFETY: a pure system call; a child that is not reaped yet keeps its number.
            unsafe { libc::kill(pid as pid_t, libc::SIGKILL) };
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// Kills the command's process group. Its leader is not reaped yet, so that the number cannot mean another group.
fn kill_group(leader: pid_t) {
    // SAFETY: a pure system call.
    unsafe { libc::kill(-leader, libc::SIGKILL) };
}

/// Takes a child that has ended, adds what it used, and returns its status.
fn reap(pid: pid_t, into: &mut Ended) -> c_int {
    let mut status = 0;
    // SAFETY: zeros are a valid rusage, and both places are live.
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
    // SAFETY: zeros are a valid timespec, which the call fills in.
    let time = unsafe {
        let mut time: libc::timespec = zeroed();
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time);
        time
    };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn errno() -> c_int {
    // SAFETY: the calling thread's own place.
    unsafe { *libc::__errno_location() }
}

#[cfg(test)]
mod tests;
