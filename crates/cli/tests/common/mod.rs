mod said;

pub use said::*;
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// By an outer build, with every other program.
fn built_before() -> Option<PathBuf> {
    std::env::var_os("CRATON_LIBRARY").map(PathBuf::from)
}

pub fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        if let Some(library) = built_before() {
            return library;
        }
        let own = Path::new(env!("CARGO_BIN_EXE_craton"));
        let target = own.parent().and_then(Path::parent).expect("a program built by cargo lies in target/PROFILE");
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--release", "-p", "craton-preload", "--target-dir"]).arg(target);
        cargo.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        assert!(cargo.status().unwrap().success(), "the library cannot be built");
        target.join("release/libcraton.so")
    })
}

pub fn craton<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_craton"));
    command
        .args(args)
        .env("CRATON_LIBRARY", library())
        .env_remove("LD_PRELOAD")
        .env_remove("CRATON_OPTIONS")
        .env_remove("CRATON_PEERS");
    command
}

/// Removed when dropped.
pub struct Place(pub PathBuf);

impl Place {
    pub fn new(name: &str) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let (id, next) = (std::process::id(), NEXT.fetch_add(1, Relaxed));
        let path = std::env::temp_dir().join(format!("craton-cli-test-{name}-{id}-{next}"));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    pub fn compile(&self, name: &str, source: &str, flags: &[&str]) -> String {
        let (program, file) = (self.path(name), self.path(&format!("{name}.c")));
        fs::write(&file, source).unwrap();
        assert!(Command::new("gcc").args(["-O0", "-o", &program, &file]).args(flags).status().unwrap().success());
        program
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A port that is free at the moment.
pub fn port() -> String {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string()
}

pub fn cargo_program(package: &str, name: &str) -> PathBuf {
    let own = Path::new(env!("CARGO_BIN_EXE_craton"));
    if built_before().is_some() {
        return own.with_file_name(name);
    }
    let target = own.parent().and_then(Path::parent).expect("a program built by cargo lies in target/PROFILE");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "-p", package, "--bin", name, "--target-dir"]).arg(target);
    cargo.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    assert!(cargo.status().unwrap().success(), "{name} cannot be built");
    target.join("debug").join(name)
}

/// `wipe` clears addresses that earlier calls left on the stack and in vector registers.
pub const HEAD: &str = "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <poll.h>\n#include <pthread.h>\n#include <stdio.h>\n\
    #include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n\
    static void *global;\n\
    #if defined(__x86_64__)\n\
    #define WIPE(n) __asm__ volatile(\"pxor %%xmm\" #n \", %%xmm\" #n ::: \"xmm\" #n);\n\
    #define WIPE_VECTORS WIPE(0) WIPE(1) WIPE(2) WIPE(3) WIPE(4) WIPE(5) WIPE(6) WIPE(7)\n\
    #define WIPE_UNKEPT __asm__ volatile(\"xor %%r8d, %%r8d; xor %%r9d, %%r9d\" ::: \"r8\", \"r9\");\n\
    #else\n#define WIPE_VECTORS\n#define WIPE_UNKEPT\n#endif\n\
    __attribute__((noinline)) static void wipe(void) {\n\
        volatile char room[32768]; memset((void *)room, 0, sizeof room); WIPE_VECTORS }\n\
    static void wait_here(void) { puts(\"ready\"); fflush(stdout); char c;\n\
        do { WIPE_UNKEPT } while (read(0, &c, 1) > 0); }\n";

/// Waits for the end of its input.
pub struct Program {
    child: Child,
    said: Vec<(String, String)>,
}

impl Program {
    pub fn start(place: &Place, name: &str, body: &str) -> Self {
        Self::start_with(place, name, body, &[])
    }

    pub fn start_with(place: &Place, name: &str, body: &str, options: &[&str]) -> Self {
        let program = place.compile(name, &format!("{HEAD}{body}"), &["-w", "-ldl", "-lpthread"]);
        // With a file of the reports `craton` becomes the program, which then is the child.
        let reports = format!("debug_file={}", place.path("reports"));
        let reports = options.iter().any(|option| option.starts_with("debug=")).then_some(reports.as_str());
        let options = options.iter().copied().chain(reports).flat_map(|option| ["-o", option]);
        Self::run(&mut craton(["run"].into_iter().chain(options).chain(["--", program.as_str()])))
    }

    pub fn run(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let said = lines
            .take_while(|line| line != "ready")
            .filter_map(|line| line.split_once(' ').map(|(name, value)| (name.to_owned(), value.to_owned())));
        let said = said.collect();
        // Between `puts` and `read`, registers still hold what the program has printed.
        let stat = format!("/proc/{}/stat", child.id());
        let sleeps = || fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") S "));
        (0..500).take_while(|_| !sleeps()).for_each(|_| std::thread::sleep(Duration::from_millis(2)));
        Self { child, said }
    }

    pub fn address(&self, name: &str) -> &str {
        let found = self.said.iter().find(|(known, _)| known == name);
        &found.unwrap_or_else(|| panic!("no {name} in {:?}", self.said)).1
    }

    pub fn pid(&self) -> String {
        self.child.id().to_string()
    }

    pub fn row(&self, task: &[&str]) -> (Value, i32) {
        row(&[&["--pid", &self.pid()], task].concat())
    }

    /// Lets it go on, without waiting for its end.
    pub fn close_input(mut self) -> Self {
        drop(self.child.stdin.take());
        self
    }

    pub fn end(mut self) -> bool {
        drop(self.child.stdin.take());
        self.child.wait().unwrap().success()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn row(args: &[&str]) -> (Value, i32) {
    let said = said(&mut craton([&["core"], args, &["--json", "-"]].concat()));
    let document: Value = serde_json::from_str(&said.out).unwrap_or_else(|e| panic!("{args:?}: {e}: {}", said.err));
    (document["rows"][0].clone(), said.status)
}
