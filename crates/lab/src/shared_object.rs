//! Whether a file can be preloaded.
//!
//! **What.** [`check`] looks at the start of the file: it must be a shared object for the machine that this program is for. The dynamic
//! linker says little of one that is not, and goes on without it.
//!
//! **Failure.** Half a sentence that goes on behind the file's name.
//!
//! **Not here.** Whether the linker can load it: that depends on the libraries that it needs.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// What an ELF file begins with.
const MAGIC: &[u8] = b"\x7fELF";
/// The type of shared objects.
const DYNAMIC: u16 = 3;

/// What the first bytes of an ELF file say.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Head {
    /// Of addresses: 1 for 32 bits, 2 for 64.
    class: u8,
    /// 1 for the least significant byte first.
    order: u8,
    kind: u16,
    machine: u16,
}

impl Head {
    /// Its length, from the file's start.
    const BYTES: usize = 20;

    /// `None` when the file is no ELF file.
    fn read(path: &Path) -> io::Result<Option<Self>> {
        let mut head = Vec::new();
        File::open(path)?.take(Self::BYTES as u64).read_to_end(&mut head)?;
        if head.len() < Self::BYTES || !head.starts_with(MAGIC) {
            return Ok(None);
        }
        let order = head[5];
        let half = |at: usize| {
            let bytes = [head[at], head[at + 1]];
            if order == 1 { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) }
        };
        Ok(Some(Self { class: head[4], order, kind: half(16), machine: half(18) }))
    }
}

/// Why a file cannot be preloaded into programs for the machine that this one is for; nothing is said against one that can.
pub fn check(path: &Path) -> Result<(), String> {
    let unread = |error: io::Error| format!("cannot be read: {error}");
    // A pipe would be waited for.
    let kind = std::fs::metadata(path).map_err(unread)?;
    if kind.is_dir() {
        return Err("is a directory".to_owned());
    }
    if !kind.is_file() {
        return Err("is no file that could be preloaded".to_owned());
    }
    let Some(head) = Head::read(path).map_err(unread)? else {
        return Err("is no shared library (it does not begin as one)".to_owned());
    };
    if head.kind != DYNAMIC {
        return Err(format!("is no shared library (it is an ELF file of type {}, not {DYNAMIC})", head.kind));
    }
    match Head::read(Path::new("/proc/self/exe")).ok().flatten() {
        Some(own) if (own.class, own.order, own.machine) != (head.class, head.order, head.machine) => Err(format!(
            "is a shared library for another machine ({}, not {})",
            machine(head.class, head.machine),
            machine(own.class, own.machine)
        )),
        _ => Ok(()),
    }
}

/// A machine in words.
fn machine(class: u8, machine: u16) -> String {
    let bits = match class {
        1 => "32 bits",
        2 => "64 bits",
        _ => "an unknown class",
    };
    match machine {
        3 => format!("i386, {bits}"),
        62 => format!("x86-64, {bits}"),
        183 => format!("AArch64, {bits}"),
        243 => format!("RISC-V, {bits}"),
        other => format!("ELF machine {other}, {bits}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(class: u8, order: u8, kind: u16, machine: u16) -> Vec<u8> {
        let half = |n: u16| if order == 1 { n.to_le_bytes() } else { n.to_be_bytes() };
        [MAGIC, &[class, order, 1, 0], &[0; 8], &half(kind), &half(machine)].concat()
    }

    fn says(bytes: &[u8]) -> Result<(), String> {
        // Each test has a thread.
        let name = format!("craton-shared-object-{}-{:?}", std::process::id(), std::thread::current().id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, bytes).unwrap();
        let said = check(&path);
        std::fs::remove_file(&path).unwrap();
        said
    }

    #[test]
    fn a_shared_library_for_this_machine_can_be_preloaded() {
        // The test program is itself a shared object, as position-independent ones are.
        let own = Head::read(Path::new("/proc/self/exe")).unwrap().unwrap();
        assert_eq!(says(&head(own.class, own.order, DYNAMIC, own.machine)), Ok(()));
    }

    #[test]
    fn what_is_none_is_told_with_the_reason() {
        let whole = head(2, 1, DYNAMIC, 62);
        for bytes in
            [b"".as_slice(), b"#!/bin/sh\nexit 0 # a script\n", &whole[..19], b"!<arch>\nlibcraton.a of some length"]
        {
            assert_eq!(says(bytes), Err("is no shared library (it does not begin as one)".to_owned()));
        }
        assert_eq!(
            says(&head(2, 1, 1, 62)),
            Err("is no shared library (it is an ELF file of type 1, not 3)".to_owned())
        );
        for (class, order, number, name) in
            [(2, 2, 21, "ELF machine 21, 64 bits"), (1, 1, 40, "ELF machine 40, 32 bits"), (1, 1, 3, "i386, 32 bits")]
        {
            let why = says(&head(class, order, DYNAMIC, number)).unwrap_err();
            assert!(why.starts_with(&format!("is a shared library for another machine ({name}, not ")), "{why}");
        }
    }

    #[test]
    fn what_is_no_file_is_told() {
        assert_eq!(check(Path::new("/")), Err("is a directory".to_owned()));
        assert_eq!(check(Path::new("/dev/null")), Err("is no file that could be preloaded".to_owned()));
        assert!(check(Path::new("/nowhere/lib.so")).unwrap_err().starts_with("cannot be read: No such file"));
    }
}
