//! Whether a file is a shared object for this machine: with others the dynamic linker prints
//! little, and continues without them.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

const MAGIC: &[u8] = b"\x7fELF";
const DYNAMIC: u16 = 3;

#[derive(Clone, Copy, PartialEq, Eq)]
struct Head {
    /// 1 for 32 bits, 2 for 64.
    class: u8,
    order: u8,
    kind: u16,
    machine: u16,
}

impl Head {
    const BYTES: usize = 20;

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

pub fn check(path: &Path) -> Result<(), String> {
    let unread = |error: io::Error| format!("cannot be read: {error}");
    // Opening a pipe would wait.
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
mod tests;
