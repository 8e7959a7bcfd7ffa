//! A program in a control group, of version 1 or 2, that limits its memory; removed when dropped.
//!
//! **Unsafe.** A closure between fork and exec.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// Version 1, version 2.
const FILES: [(&str, &str, &str); 2] =
    [("memory", "memory.limit_in_bytes", "memory.max_usage_in_bytes"), ("", "memory.max", "memory.peak")];
const ROOT: &str = "/sys/fs/cgroup";

pub struct Group {
    path: PathBuf,
    peak: &'static str,
}

impl Group {
    pub fn new(limit_bytes: u64) -> Result<Self, String> {
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let mut last = format!("{ROOT} has no memory controller");
        for (controller, limit, peak) in FILES {
            let mine = own.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
            let mine = mine.filter(|(controllers, _)| controllers.split(',').any(|c| c == controller));
            for path in mine.map(|(_, path)| path.trim_start_matches('/').to_owned()).chain([String::new()]) {
                let above = PathBuf::from(ROOT).join(controller).join(path);
                let group = Self { path: above.join(format!("craton-wild-{}", std::process::id())), peak };
                if !above.join("cgroup.procs").exists() || fs::create_dir(&group.path).is_err() {
                    continue;
                }
                // `fs::write` would make the file without a controller.
                let open = OpenOptions::new().write(true).open(group.path.join(limit));
                match open.and_then(|mut file| file.write_all(limit_bytes.to_string().as_bytes())) {
                    Ok(()) => return Ok(group),
                    Err(e) => last = format!("{}: {e}", group.path.join(limit).display()),
                }
            }
        }
        Err(format!("cannot make a control group with a limit of memory: {last}"))
    }

    pub fn enter(&self, command: &mut Command) -> Result<(), String> {
        let procs = self.path.join("cgroup.procs");
        let failed = |e| format!("cannot open {}: {e}", procs.display());
        let mut file: File = OpenOptions::new().write(true).open(&procs).map_err(failed)?;
        // SAFETY: one system call, on an open file; 0 means the caller.
        unsafe { command.pre_exec(move || file.write_all(b"0")) };
        Ok(())
    }

    /// 0: not reported.
    pub fn peak_bytes(&self) -> u64 {
        let text = fs::read_to_string(self.path.join(self.peak)).unwrap_or_default();
        text.trim().parse().unwrap_or(0)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A killed process leaves its group later than its parent learns of it.
        for _ in 0..100 {
            if fs::remove_dir(&self.path).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
