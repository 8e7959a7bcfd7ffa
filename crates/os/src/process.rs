//! Facts of the process.
//!
//! **Unsafe.** Calls the C library's queries; accesses `errno`.

use crate::small_file::{PathText, read_start};
use crate::{call, listener};
use core::ffi::CStr;
use core::fmt;

pub fn errno() -> i32 {
    // SAFETY: the C library promises a valid place for each thread.
    unsafe { *libc::__errno_location() }
}

pub fn set_errno(value: i32) {
    // SAFETY: as in `errno`.
    unsafe { *libc::__errno_location() = value }
}

/// The system's words for an `errno`, and its number.
#[derive(Clone, Copy, Debug)]
pub struct ErrnoText(pub i32);

impl fmt::Display for ErrnoText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0u8; 128];
        // SAFETY: the buffer has this length, and its last byte stays 0.
        unsafe { libc::strerror_r(self.0, text.as_mut_ptr().cast(), text.len() - 1) };
        let text = CStr::from_bytes_until_nul(&text).unwrap_or_default();
        write!(f, "{} (error {})", text.to_str().unwrap_or("?"), self.0)
    }
}

pub const ENOMEM: i32 = libc::ENOMEM;
pub const EINVAL: i32 = libc::EINVAL;
pub const EBUSY: i32 = libc::EBUSY;
pub const EDEADLK: i32 = libc::EDEADLK;
pub const ETIMEDOUT: i32 = libc::ETIMEDOUT;
pub const ECANCELED: i32 = libc::ECANCELED;

pub fn page_size() -> usize {
    // SAFETY: no preconditions.
    unsafe { libc::getauxval(libc::AT_PAGESZ) as usize }
}

/// Set-uid or the like: do not trust the environment.
pub fn is_privileged() -> bool {
    // SAFETY: no preconditions.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Null before the C library's set-up.
pub fn environment() -> *const *const core::ffi::c_char {
    // SAFETY: POSIX's declaration.
    unsafe extern "C" {
        static environ: *const *const core::ffi::c_char;
    }
    // SAFETY: the C library's variable; only the pointer is read.
    unsafe { environ }
}

/// In bytes; 0: unknown.
pub fn physical_memory() -> usize {
    // SAFETY: zeros are a valid `sysinfo`.
    let info = unsafe {
        let mut info: libc::sysinfo = core::mem::zeroed();
        if libc::sysinfo(&mut info) != 0 {
            return 0;
        }
        info
    };
    (info.totalram as usize).saturating_mul(info.mem_unit as usize)
}

/// `ulimit -v`, in bytes.
pub fn address_space_limit() -> Option<usize> {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: `limit` can be written.
    unsafe { libc::getrlimit(libc::RLIMIT_AS, &mut limit) };
    (limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur as usize)
}

/// Possibly stale.
pub fn cpu() -> usize {
    // Models are deterministic.
    if cfg!(loom) {
        return 0;
    }
    // SAFETY: no preconditions.
    unsafe { libc::sched_getcpu().max(0) as usize }
}

/// Eight bytes; keeps `errno`.
pub fn can_read(at: usize) -> bool {
    let saved = errno();
    // SAFETY: the kernel reads the mask before it rejects the invalid operation; nothing changes.
    let answer = unsafe { libc::syscall(libc::SYS_rt_sigprocmask, !0u32, at, 0usize, 8usize) };
    let refused = errno();
    set_errno(saved);
    answer != 0 && refused == libc::EINVAL
}

pub fn id() -> u32 {
    // SAFETY: no preconditions.
    unsafe { libc::getpid() as u32 }
}

pub fn pause() {
    call::pause();
}

/// The system's; 0.2 µs a call.
pub fn thread_id() -> u32 {
    // SAFETY: no preconditions.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

/// An address.
pub fn code_of_libc() -> usize {
    libc::strlen as *const () as usize
}

/// Other processes cannot guess it.
pub fn random_seed() -> u64 {
    let [a, b] = random_words();
    a ^ b
}

/// Of program start, else constants. The C library uses them for stack guard and pointers' key.
pub fn random_words() -> [u64; 2] {
    // SAFETY: AT_RANDOM points at 16 bytes that live as long as the process.
    unsafe {
        let bytes = libc::getauxval(libc::AT_RANDOM) as *const u64;
        if bytes.is_null() {
            [0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03]
        } else {
            [bytes.read_unaligned(), bytes.add(1).read_unaligned()]
        }
    }
}

/// At most 15 bytes; returns the length.
pub fn name(name: &mut [u8; 16]) -> usize {
    let path = PathText::new(b"/proc/self/comm");
    let read = path.and_then(|path| read_start(&path, name).ok()).unwrap_or_default();
    read.iter().position(|b| *b == b'\n').unwrap_or(read.len())
}

/// Duplicates standard error to a high, close-on-exec descriptor, if it can.
pub fn keep_stderr() -> i32 {
    // SAFETY: touches no memory.
    let kept = unsafe { libc::fcntl(libc::STDERR_FILENO, libc::F_DUPFD_CLOEXEC, 250) };
    if kept < 0 { libc::STDERR_FILENO } else { kept }
}

/// Whether [`append_to_file`] would likely succeed; keeps `errno`.
pub fn can_append(path: &[u8]) -> bool {
    let saved = errno();
    // O_NONBLOCK: a pipe without a reader would wait.
    let fd = call::open(call::path(path), libc::O_WRONLY | libc::O_APPEND | libc::O_NONBLOCK, 0);
    let can = if fd >= 0 {
        // SAFETY: ours.
        unsafe { call::close(fd) == 0 }
    } else {
        // ENXIO: a socket, or a pipe without a reader so far.
        errno() == libc::ENXIO || errno() == libc::ENOENT && folder_can_be_written(path)
    };
    set_errno(saved);
    can
}

fn folder_can_be_written(path: &[u8]) -> bool {
    let mut folder = [0; 512];
    let slash = path.iter().rposition(|byte| *byte == b'/');
    let text = slash.map_or(&b"."[..], |slash| &path[..slash.max(1)]);
    if text.len() >= folder.len() {
        return false;
    }
    folder[..text.len()].copy_from_slice(text);
    // SAFETY: a terminated path.
    unsafe { libc::access(folder.as_ptr().cast(), libc::W_OK | libc::X_OK) == 0 }
}

/// `path` ends by 0; mode 0600. Signals of file-size limits and broken pipes are suppressed. A
/// program that listens on a socket there gets the text, and the call returns when it has closed
/// its end.
pub fn append_to_file(path: &[u8], text: &[u8]) -> bool {
    let fd = call::open(call::path(path), libc::O_WRONLY | libc::O_APPEND | libc::O_CREAT, 0o600);
    if fd < 0 {
        return errno() == libc::ENXIO && listener::tell(path, text);
    }
    let written = write_without_signals(fd, text);
    let saved = errno();
    // SAFETY: ours.
    unsafe { call::close(fd) };
    set_errno(saved);
    written == text.len() as isize
}

/// A write whose SIGXFSZ or SIGPIPE does not reach the program.
pub(crate) fn write_without_signals(fd: i32, text: &[u8]) -> isize {
    // SAFETY: zeros are valid signal sets.
    unsafe {
        let (mut ours, mut before, mut pending): (libc::sigset_t, libc::sigset_t, libc::sigset_t) =
            (core::mem::zeroed(), core::mem::zeroed(), core::mem::zeroed());
        libc::sigemptyset(&mut ours);
        libc::sigpending(&mut pending);
        // A pending one is the program's.
        for signal in [libc::SIGXFSZ, libc::SIGPIPE] {
            if libc::sigismember(&pending, signal) == 0 {
                libc::sigaddset(&mut ours, signal);
            }
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &ours, &mut before);
        let written = call::write(fd, text);
        let saved = errno();
        if written < 0 {
            call::consume_signal(&ours);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, core::ptr::null_mut());
        set_errno(saved);
        written
    }
}
