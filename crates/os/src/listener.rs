//! A program that listens on a Unix socket, and that may look at this process before it goes on.
//!
//! **Failure.** `errno`. A listener that does not close its end is waited for [`PATIENCE_S`].
//! **Unsafe.** System calls without cancellation points.

use crate::call;
use crate::process::errno;
use core::mem::{offset_of, zeroed};
use libc::{c_int, sockaddr_un, syscall, timeval};

const PATIENCE_S: i64 = 5;

/// Sends `text`, and returns when the listener has closed its end. `path` ends by 0.
pub(crate) fn tell(path: &[u8], text: &[u8]) -> bool {
    // SAFETY: zeros are a valid address.
    let mut address: sockaddr_un = unsafe { zeroed() };
    address.sun_family = libc::AF_UNIX as u16;
    let path = call::path(path).to_bytes();
    if path.len() >= address.sun_path.len() {
        return false;
    }
    for (to, from) in address.sun_path.iter_mut().zip(path) {
        *to = (*from).cast_signed();
    }
    let len = offset_of!(sockaddr_un, sun_path) + path.len() + 1;
    let patience = timeval { tv_sec: PATIENCE_S, tv_usec: 0 };
    // SAFETY: a new descriptor of ours; the kernel reads the address, the time and the text, and
    // writes into the answer.
    unsafe {
        let fd = syscall(libc::SYS_socket, libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) as c_int;
        if fd < 0 {
            return false;
        }
        for option in [libc::SO_SNDTIMEO, libc::SO_RCVTIMEO] {
            let bytes = size_of::<timeval>();
            syscall(libc::SYS_setsockopt, fd, libc::SOL_SOCKET, option, &raw const patience, bytes);
        }
        // A stop of the process interrupts calls with a time limit (signal(7)).
        let retry = |call: &dyn Fn() -> i64| loop {
            let result = call();
            if result >= 0 || errno() != libc::EINTR {
                break result;
            }
        };
        let flags = libc::MSG_NOSIGNAL;
        let is_sent = retry(&|| syscall(libc::SYS_connect, fd, &raw const address, len)) == 0
            && retry(&|| syscall(libc::SYS_sendto, fd, text.as_ptr(), text.len(), flags, 0, 0)) == text.len() as i64;
        let mut answer = [0u8; 16];
        let (to, room) = (answer.as_mut_ptr(), answer.len());
        while is_sent && retry(&|| syscall(libc::SYS_recvfrom, fd, to, room, 0, 0, 0)) > 0 {}
        call::close(fd);
        is_sent
    }
}

#[cfg(test)]
mod tests;
