use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

pub struct Group(Vec<PathBuf>);

impl Group {
    /// `None` if not permitted.
    pub fn new(bytes: u64) -> Option<Self> {
        Self::of(bytes, false)
    }

    pub fn with_half_a_processor(bytes: u64) -> Option<Self> {
        Self::of(bytes, true)
    }

    fn of(bytes: u64, half: bool) -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("craton-test-{}-{}", std::process::id(), NUMBER.fetch_add(1, Relaxed));
        let root = Path::new("/sys/fs/cgroup");
        let (mut group, v1) = (Self(Vec::new()), root.join("memory").exists());
        let dirs: &[&str] = if v1 { &["memory", "cpu"] } else { &[""] };
        for dir in dirs {
            let dir = root.join(dir).join(&name);
            fs::create_dir(&dir).ok()?;
            group.0.push(dir);
        }
        if half {
            let quota = if v1 {
                fs::write(group.0[1].join("cpu.cfs_quota_us"), "50000")
            } else {
                fs::write(group.0[0].join("cpu.max"), "50000 100000")
            };
            quota.ok()?;
        }
        group.limit(bytes).then_some(group)
    }

    pub fn limit(&self, bytes: u64) -> bool {
        let file = ["memory.limit_in_bytes", "memory.max"].map(|f| self.0[0].join(f)).into_iter().find(|f| f.exists());
        file.is_some_and(|file| fs::write(file, bytes.to_string()).is_ok())
    }

    pub fn enter(&self) -> String {
        self.0.iter().map(|dir| format!("echo $$ > {}/cgroup.procs && ", dir.display())).collect()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for dir in &self.0 {
            let _ = fs::remove_dir(dir);
        }
    }
}
