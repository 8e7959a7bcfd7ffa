use serde_json::Value;
use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::env;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

pub fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .and_then(Path::parent)
        .expect("the package lies two folders below the workspace's root")
}

/// Or built in release mode, once.
pub fn library() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| match env::var_os("CRATON_LIBRARY") {
        Some(path) => fs::canonicalize(&path)
            .unwrap_or_else(|e| panic!("CRATON_LIBRARY={}: {e}; give the path of libcraton.so", path.display())),
        None => built("libcraton.so"),
    })
}

pub fn static_library() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| match env::var_os("CRATON_LIBRARY") {
        Some(_) => library().with_file_name("libcraton.a"),
        None => built("libcraton.a"),
    })
}

fn built(name: &str) -> PathBuf {
    static ARTIFACTS: OnceLock<Vec<PathBuf>> = OnceLock::new();
    let artifacts = ARTIFACTS.get_or_init(|| build(&["--release", "-p", "craton-preload"], &[]));
    found(artifacts, name)
}

/// With the tests' profile, for which most of it is built already.
pub fn pheap_library(name: &str) -> PathBuf {
    if let Some(library) = env::var_os("CRATON_PHEAP_LIBRARY") {
        return Path::new(&library).with_file_name(name);
    }
    static ARTIFACTS: OnceLock<Vec<PathBuf>> = OnceLock::new();
    let unwinding = ("CARGO_PROFILE_DEV_PANIC", "unwind");
    let artifacts = ARTIFACTS.get_or_init(|| build(&["-p", "craton-pheap-c"], &[unwinding]));
    found(artifacts, name)
}

fn build(args: &[&str], env: &[(&str, &str)]) -> Vec<PathBuf> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "--message-format=json-render-diagnostics"])
        .args(args)
        .envs(env.iter().copied())
        .current_dir(workspace())
        .output()
        .expect("cargo can be started");
    assert!(output.status.success(), "the library does not build:\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .flat_map(|message| message["filenames"].as_array().cloned().unwrap_or_default())
        .filter_map(|path| path.as_str().map(PathBuf::from))
        .collect()
}

fn found(artifacts: &[PathBuf], name: &str) -> PathBuf {
    let found = artifacts.iter().find(|path| path.file_name().is_some_and(|n| n == name));
    found.unwrap_or_else(|| panic!("cargo built no {name}, only {artifacts:?}")).clone()
}

/// Flags follow the source, so that libraries are found. Equal calls compile once.
pub fn cc(source: &str, flags: &[&str]) -> PathBuf {
    compile("gcc", &["-std=gnu17"], source, flags)
}

pub fn cxx(source: &str, flags: &[&str]) -> PathBuf {
    compile("g++", &["-std=gnu++17"], source, flags)
}

fn compile(compiler: &str, language: &[&str], source: &str, flags: &[&str]) -> PathBuf {
    type Compiled = Arc<OnceLock<PathBuf>>;
    static DONE: Mutex<Option<HashMap<u64, Compiled>>> = Mutex::new(None);
    let mut hasher = DefaultHasher::new();
    (compiler, source, flags).hash(&mut hasher);
    let key = hasher.finish();
    let mut done = DONE.lock().unwrap_or_else(PoisonError::into_inner);
    let program = done.get_or_insert_default().entry(key).or_default().clone();
    drop(done);
    program.get_or_init(|| compile_once(compiler, language, source, flags, key)).clone()
}

fn compile_once(compiler: &str, language: &[&str], source: &str, flags: &[&str], key: u64) -> PathBuf {
    let folder = programs_folder();
    let stem = Path::new(source).file_stem().expect("a source has a name").to_string_lossy().into_owned();
    let path = folder.join(format!("{stem}-{key:016x}"));
    let unfinished = folder.join(format!("{stem}-{key:016x}.{}", process::id()));
    // The compiler may otherwise remove an unused malloc.
    let output = Command::new(compiler)
        .args(language)
        .args(["-O1", "-g", "-Wall", "-Wextra", "-fno-builtin", "-pthread", "-o"])
        .arg(&unfinished)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("c").join(source))
        .args(flags)
        .output()
        .unwrap_or_else(|e| panic!("{compiler}: {e}; install the Debian packages gcc and g++"));
    assert!(output.status.success(), "{source} {flags:?}:\n{}", String::from_utf8_lossy(&output.stderr));
    // A concurrent test process never runs half a program.
    fs::rename(&unfinished, &path).expect("the compiled program can be renamed");
    path
}

fn programs_folder() -> PathBuf {
    let exe = env::current_exe().expect("a test knows its executable");
    let deps = exe.parent().expect("the executable lies in a folder");
    let folder = deps.parent().unwrap_or(deps).join("craton-programs");
    fs::create_dir_all(&folder).unwrap_or_else(|e| panic!("cannot create {}: {e}", folder.display()));
    folder
}
