//! `craton-host [--well STATUS] MEMORY-FILE COMMAND…`: runs a guest whose memory is a file, and
//! every millisecond punches holes into it for offered huge frames. STATUS is QEMU's success.
//!
//! **Unsafe.** Maps a file that another process changes; it reads and writes atomics alone.

use craton_kernel::board::{Board, HEAD, MAGIC, offset_in_file};
use rustix::fs::{FallocateFlags, fallocate, fstat};
use rustix::mm::{MapFlags, ProtFlags, mmap};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

const HUGE: u64 = 2 << 20;
const IS_WELL: i32 = 33;
const PAUSE: Duration = Duration::from_millis(1);

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1).peekable();
    let mut well = IS_WELL;
    if arguments.next_if(|first| first == "--well").is_some() {
        let status = arguments.next().unwrap_or_default();
        match status.to_str().and_then(|text| text.parse().ok()) {
            Some(status) => well = status,
            None => {
                eprintln!("craton-host: --well {status:?}: STATUS is a number, as in --well 0");
                return ExitCode::from(2);
            }
        }
    }
    let (Some(path), Some(program)) = (arguments.next(), arguments.next()) else {
        eprintln!(
            "usage: craton-host [--well STATUS] MEMORY-FILE COMMAND…: COMMAND is QEMU with the file as the guest's memory"
        );
        return ExitCode::from(2);
    };
    let mut command = Command::new(&program);
    command.args(arguments).stdout(Stdio::piped());
    match run(&path, command, well) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("craton-host: {why}");
            ExitCode::FAILURE
        }
    }
}

#[derive(Default)]
struct Counts {
    calls: AtomicUsize,
    frames: AtomicUsize,
    is_over: AtomicBool,
}

fn run(path: &std::ffi::OsStr, mut command: Command, well: i32) -> Result<(), String> {
    let mut guest = command.spawn().map_err(|error| format!("{:?}: {error}", command.get_program()))?;
    let lines = BufReader::new(guest.stdout.take().ok_or("the guest has no output")?).lines();
    let counts = Counts::default();
    let found = thread::scope(|scope| {
        let follow = || {
            let mut file = None;
            for line in lines.map_while(Result::ok) {
                println!("{line}");
                if let Some(address) = line.strip_prefix("{\"step\":\"board\",\"address\":").and_then(number) {
                    let (of, taken) = (open(path)?, open(path)?);
                    let found = map(&taken, address)?;
                    scope.spawn(|| take_offers(taken, found, &counts));
                    file = Some(of);
                }
                if let (Some(file), true) = (&file, line.contains("\"taken\"") || line.contains("\"used_again\"")) {
                    report(file, &counts)?;
                }
            }
            Ok(())
        };
        let found = follow();
        counts.is_over.store(true, Ordering::Relaxed);
        found
    });
    let status = guest.wait().map_err(|error| error.to_string())?;
    found.and_then(|()| if status.code() == Some(well) { Ok(()) } else { Err(format!("the guest failed: {status}")) })
}

fn report(file: &File, counts: &Counts) -> Result<(), String> {
    let bytes = fstat(file).map_err(|error| error.to_string())?.st_blocks * 512;
    let (calls, frames) = (counts.calls.load(Ordering::Relaxed), counts.frames.load(Ordering::Relaxed));
    println!("{{\"step\":\"host\",\"guest_bytes\":{bytes},\"huge_frames_taken\":{frames},\"system_calls\":{calls}}}");
    Ok(())
}

fn number(text: &str) -> Option<u64> {
    text.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

fn open(path: &std::ffi::OsStr) -> Result<File, String> {
    OpenOptions::new().read(true).write(true).open(path).map_err(|error| format!("{}: {error}", path.display()))
}

struct Found {
    base: u64,
    file_bytes: u64,
    board: Board<'static>,
}

fn map(file: &File, address: u64) -> Result<Found, String> {
    let file_bytes = fstat(file).map_err(|error| error.to_string())?.st_size as u64;
    let flags = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping, which stays; both sides use atomics alone.
    let at =
        unsafe { mmap(std::ptr::null_mut(), 4096, flags, MapFlags::SHARED, file, offset_in_file(address, file_bytes)) };
    let at = at.map_err(|error| format!("the board at {address:#x} of the memory's file: {error}"))?;
    // SAFETY: a page of atomic words, for ever.
    let head = unsafe { std::slice::from_raw_parts(at.cast::<AtomicU64>(), HEAD / 8) };
    // ORDERING: pairs with the guest's store of the magic.
    if head[0].load(Ordering::Acquire) != MAGIC {
        return Err(format!("no board at {address:#x} of the memory's file: is it this guest's memory?"));
    }
    let len = (head[2].load(Ordering::Relaxed) as usize).min(4096 - HEAD);
    // SAFETY: as above, in the same page.
    let states = unsafe { std::slice::from_raw_parts(at.cast::<AtomicU8>().add(HEAD), len) };
    Ok(Found { base: head[1].load(Ordering::Relaxed), file_bytes, board: Board::new(states) })
}

fn take_offers(file: File, found: Found, counts: &Counts) {
    let Found { base, file_bytes, board } = found;
    while !counts.is_over.load(Ordering::Relaxed) {
        let mut at = 0;
        while at < board.len() {
            let run = (at..board.len()).take_while(|frame| board.begin_taking(*frame)).count();
            if run > 0 {
                // No run crosses the hole below 4 GiB, which is never free.
                let (begin, bytes) = (offset_in_file(base + at as u64 * HUGE, file_bytes), run as u64 * HUGE);
                let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                if let Err(error) = fallocate(&file, how, begin, bytes) {
                    // The memory stays; the guest may use it again all the same.
                    eprintln!("craton-host: {bytes} bytes at {begin:#x} of the memory's file stay: {error}");
                }
                (at..at + run).for_each(|frame| board.end_taking(frame));
                counts.calls.fetch_add(1, Ordering::Relaxed);
                counts.frames.fetch_add(run, Ordering::Relaxed);
            }
            at += run + 1;
        }
        thread::sleep(PAUSE);
    }
}
