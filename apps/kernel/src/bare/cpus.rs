//! All CPUs of the machine: their start, and jobs for some of them at once.

use super::faults;
use super::machine::{self, in8, out16, read_controller, sleep_unless, ticks, use_tables, write_controller};
use core::sync::atomic::{AtomicUsize, Ordering};

/// As `CPUS` in boot.s.
pub const MOST: usize = 8;
/// Startup interrupt's vector 8.
const TRAMPOLINE: usize = 0x8000;
const WAIT_TICKS: u64 = 1 << 33;

unsafe extern "C" {
    static trampoline_begin: u8;
    static trampoline_end: u8;
}

type Job<'a> = dyn Fn(usize) + Sync + 'a;

static RUNNING: AtomicUsize = AtomicUsize::new(1);
/// Jobs so far × [`PARTS`], and the CPUs in the last one. One word: the others may see it late.
static POSTED: AtomicUsize = AtomicUsize::new(0);
const PARTS: usize = 256;
static JOB: AtomicUsize = AtomicUsize::new(0);
static DONE: AtomicUsize = AtomicUsize::new(0);

pub enum Refused {
    TooMany { given: usize },
    Silent { started: usize, given: usize },
}

/// By QEMU's configuration device; 1 without it.
fn given() -> usize {
    const SELECTOR: u16 = 0x510;
    const SIGNATURE: u16 = 0;
    const CPUS: u16 = 5;
    let read = |key: u16| {
        // SAFETY: the device answers through its port.
        unsafe {
            out16(SELECTOR, key);
            [in8(SELECTOR + 1), in8(SELECTOR + 1), in8(SELECTOR + 1), in8(SELECTOR + 1)]
        }
    };
    if read(SIGNATURE) != *b"QEMU" {
        return 1;
    }
    let [low, high, ..] = read(CPUS);
    usize::from(u16::from_le_bytes([low, high]))
}

pub fn start() -> Result<usize, Refused> {
    let given = given();
    if given > MOST {
        return Err(Refused::TooMany { given });
    }
    faults::prepare();
    faults::install(0);
    enable_controller();
    if given > 1 {
        let begin = &raw const trampoline_begin;
        let len = &raw const trampoline_end as usize - begin as usize;
        // SAFETY: nothing else uses memory below 1 MiB.
        unsafe { core::ptr::copy_nonoverlapping(begin, TRAMPOLINE as *mut u8, len) };
        const TO_ALL_OTHERS: u32 = 0xc_4000;
        write_controller(0x300, TO_ALL_OTHERS | 0x500); // init
        machine::wait(1 << 22);
        write_controller(0x300, TO_ALL_OTHERS | 0x600 | (TRAMPOLINE >> 12) as u32); // startup
        let begin = ticks();
        // ORDERING: pairs with the addition in `begin_other`: that CPU's tables are in use.
        while RUNNING.load(Ordering::Acquire) < given {
            if ticks() - begin > WAIT_TICKS {
                return Err(Refused::Silent { started: RUNNING.load(Ordering::Acquire), given });
            }
            core::hint::spin_loop();
        }
    }
    Ok(given)
}

fn enable_controller() {
    write_controller(0xf0, read_controller(0xf0) | 0x100);
}

#[unsafe(no_mangle)]
extern "C" fn begin_other(cpu: usize) -> ! {
    faults::install(cpu);
    enable_controller();
    let mut seen = 0;
    // ORDERING: pairs with the acquire in `start`.
    RUNNING.fetch_add(1, Ordering::AcqRel);
    loop {
        // ORDERING: pairs with the release in `run`: the job is there.
        sleep_unless(|| POSTED.load(Ordering::Acquire) != seen);
        let posted = POSTED.load(Ordering::Acquire);
        if posted == seen {
            continue;
        }
        seen = posted;
        if cpu < posted % PARTS {
            // SAFETY: `run` waits for this CPU, so the job lives.
            let job = unsafe { *(JOB.load(Ordering::Relaxed) as *const &Job<'_>) };
            job(cpu);
            // ORDERING: pairs with the acquire in `run`: it sees what the job did.
            DONE.fetch_add(1, Ordering::AcqRel);
        }
    }
}

/// On the first CPU: calls `job` on each of the first `cpus`, and waits for all.
pub fn run(cpus: usize, job: &Job<'_>) {
    DONE.store(0, Ordering::Relaxed);
    JOB.store(&raw const job as usize, Ordering::Relaxed);
    let jobs = POSTED.load(Ordering::Relaxed) / PARTS + 1;
    // ORDERING: pairs with the acquires in `begin_other`.
    POSTED.store(jobs * PARTS + cpus, Ordering::Release);
    if cpus > 1 {
        write_controller(0x300, 0xc_4000 | u32::from(faults::WAKE));
    }
    job(0);
    // ORDERING: pairs with the additions in `begin_other`.
    while DONE.load(Ordering::Acquire) + 1 < cpus {
        core::hint::spin_loop();
    }
}

/// # Safety
/// As [`use_tables`].
pub unsafe fn run_on_tables(cpus: usize, root: u64) {
    // SAFETY: by the contract.
    run(cpus, &|_| unsafe { use_tables(root) });
}

pub struct Barrier(AtomicUsize);

impl Barrier {
    pub const fn new() -> Self {
        Self(AtomicUsize::new(0))
    }

    pub fn wait(&self, cpus: usize) {
        // ORDERING: pairs with the acquire below of every other CPU.
        self.0.fetch_add(1, Ordering::AcqRel);
        while self.0.load(Ordering::Acquire) < cpus {
            core::hint::spin_loop();
        }
    }
}
