//! The real programs found here: they end well, find errors, and leave nothing.

use craton_lab::measure::{Allocator, Plan, Run, Status, measure};
use craton_papers::real::{self, REAL, Real, Size};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("real-{}-{name}", std::process::id()));
        fs::create_dir_all(dir.join("inputs")).unwrap();
        Self(dir)
    }

    fn inputs(&self) -> PathBuf {
        self.0.join("inputs")
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Nothing of its process group stays alive.
fn run(command: &[OsString], allocator: Allocator) -> Run {
    let plan = Plan {
        prove: false,
        processors: Vec::new(),
        command: command.to_vec(),
        allocators: vec![allocator],
        runs: 1,
        warmup: 0,
        timeout: Some(Duration::from_secs(300)),
        server: None,
        stop: &AtomicBool::new(false),
        progress: &|_| {},
    };
    measure(&plan).runs.remove(0)
}

fn preloaded() -> Allocator {
    let mut allocator = Allocator::preloaded("preloaded", "libc.so.6");
    allocator.env.push(("GLIBC_TUNABLES".into(), "glibc.malloc.arena_max=1".into()));
    allocator
}

fn here() -> impl Iterator<Item = &'static Real> {
    REAL.iter().filter(|real| real.available().inspect_err(|why| eprintln!("skipped: {why}")).is_ok())
}

fn names(dir: &Path) -> Vec<String> {
    fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Succeeds only if `craton-drive` is not preloaded.
fn quick_loads(part: usize) {
    let dir = Dir::new(&format!("quick-{part}"));
    for real in here().skip(part).step_by(2) {
        let command = real::prepare(&dir.inputs(), real, Size::Quick).unwrap();
        let run = run(&command, preloaded());
        assert_eq!(run.status, Status::Ok, "{}: {}", real.name, run.stderr);
    }
    assert_eq!(names(&dir.0), ["inputs"], "nothing is left beside the directory");
    let known = |name: &String| name == "common.sh" || REAL.iter().any(|real| name.starts_with(real.name));
    let unknown: Vec<_> = names(&dir.inputs()).into_iter().filter(|name| !known(name)).collect();
    assert_eq!(unknown, [""; 0], "every file says whose it is");
}

#[test]
fn quick_loads_succeed_on_a_preloaded_library_even() {
    quick_loads(0);
}

#[test]
fn quick_loads_succeed_on_a_preloaded_library_odd() {
    quick_loads(1);
}

#[test]
fn a_load_generator_that_is_preloaded_refuses() {
    let mut drive = Command::new(env!("CARGO_BIN_EXE_craton-drive"));
    drive.args(["redis-set", "--socket", "/nonexistent/socket"]).env("LD_PRELOAD", "libc.so.6").stdout(Stdio::null());
    let output = drive.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("env -u LD_PRELOAD"));
}

#[test]
fn a_wrong_result_fails() {
    let dir = Dir::new("wrong");
    // A wrong sum of rows, and an unexpected file.
    for (name, file, right, wrong) in
        [("sqlite3", "sqlite3.sql", "max(integrity_check) = 'ok'", "false"), ("sort", "sort.expected", "line", "lime")]
    {
        let real = real::find(name).unwrap();
        if real.available().is_err() {
            continue;
        }
        let command = real::prepare(&dir.inputs(), real, Size::Quick).unwrap();
        let file = dir.inputs().join(file);
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains(right), "{name}");
        fs::write(&file, text.replacen(right, wrong, 1)).unwrap();
        assert_eq!(run(&command, Allocator::glibc()).status, Status::Exit(1), "{name}");
    }
}

const SERVER: &str = "#!/bin/sh
echo \"${LD_PRELOAD-} ${GLIBC_TUNABLES-}\" >server.env
exec sleep 60
";

const GENERATOR: &str = "#!/bin/sh
[ -z \"${LD_PRELOAD-}${GLIBC_TUNABLES-}\" ] || exit 3
while [ \"$1\" != --server ]; do shift; done
for try in 1 2 3 4 5 6 7 8 9; do [ -s server.env ] || sleep 0.1; done
echo $2 >server.pid
exit 1
";

#[test]
fn a_server_is_preloaded_and_does_not_outlive_its_script() {
    let dir = Dir::new("server");
    let mut command = real::prepare(&dir.inputs(), real::find("redis-set").unwrap(), Size::Quick).unwrap();
    let program = |name: &str, text: &str| {
        let path = dir.0.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    };
    program("redis-server", SERVER);
    *command.last_mut().unwrap() = program("generator", GENERATOR).into_os_string();
    let mut path = dir.0.clone().into_os_string();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap());

    // With nothing preloaded redis would run on jemalloc.
    for (preloaded, seen) in [(None, "libc.so.6 \n"), (Some("libm.so.6"), "libm.so.6 glibc.malloc.arena_max=1\n")] {
        let mut script = Command::new(&command[0]);
        script.args(&command[1..]).env("PATH", &path).stderr(Stdio::null());
        script.env_remove("LD_PRELOAD").env_remove("GLIBC_TUNABLES");
        if let Some(library) = preloaded {
            script.env("LD_PRELOAD", library).env("GLIBC_TUNABLES", "glibc.malloc.arena_max=1");
        }
        assert_eq!(script.status().unwrap().code(), Some(1), "as the generator failed");
        let said = |name: &str| fs::read_to_string(dir.inputs().join(name)).unwrap();
        assert_eq!(said("server.env"), seen);
        let server = said("server.pid");
        assert!(!Path::new("/proc").join(server.trim()).exists(), "process {server} is left");
        fs::remove_file(dir.inputs().join("server.env")).unwrap();
    }
}
