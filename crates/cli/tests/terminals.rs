//! Small terminals, other PID namespaces and other users.

use crate::common::{HEAD, Place, Program, craton, into_said, said};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};

const SMALL: (u16, u16) = (20, 5);
const HOLDS: &str =
    "int main(void) { for (int i = 0; i < 3000; i++) memset(malloc(800), 1, 800); wait_here(); return 0; }";

/// A program on a separate terminal.
struct Terminal {
    child: Child,
    file: File,
    text: String,
    /// Where the next search begins.
    found: usize,
}

impl Terminal {
    fn open((columns, rows): (u16, u16), command: &mut Command) -> Self {
        let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
        let size = libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let checked = |number: i32| {
            assert!(number >= 0, "{}", io::Error::last_os_error());
            number
        };
        // SAFETY: makes a descriptor, which is closed with its owner.
        let own = unsafe { OwnedFd::from_raw_fd(checked(libc::posix_openpt(flags))) };
        // SAFETY: of this descriptor; makes the other end's.
        let other = unsafe {
            checked(libc::unlockpt(own.as_raw_fd()));
            OwnedFd::from_raw_fd(checked(libc::ioctl(own.as_raw_fd(), libc::TIOCGPTPEER, flags)))
        };
        // SAFETY: reads a live size.
        checked(unsafe { libc::ioctl(other.as_raw_fd(), libc::TIOCSWINSZ, &size) });
        let stream = || other.try_clone().unwrap();
        let child = command.stdin(stream()).stdout(stream()).stderr(stream()).spawn().unwrap();
        // The command's copies would keep the terminal open beyond the program.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self { child, file: File::from(own), text: String::new(), found: 0 }
    }

    /// Reads on; false at the end, when no program has the terminal any more.
    fn read(&mut self) -> bool {
        let mut wait = libc::pollfd { fd: self.file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one live descriptor.
        assert!(unsafe { libc::poll(&mut wait, 1, 60_000) } > 0, "nothing for a minute after {:?}", self.text);
        let mut piece = [0; 4096];
        let n = self.file.read(&mut piece).unwrap_or(0);
        self.text += &String::from_utf8_lossy(&piece[..n]);
        n > 0
    }

    /// Reads on until the text has come, after what the last call found.
    fn until(&mut self, text: &str) {
        loop {
            if let Some(at) = self.text[self.found..].find(text) {
                self.found += at + text.len();
                return;
            }
            assert!(self.read(), "no {text:?} in {:?}", self.text);
        }
    }

    fn press(&mut self, keys: &str) {
        self.file.write_all(keys.as_bytes()).unwrap();
    }

    fn end(mut self) -> (ExitStatus, String) {
        while self.read() {}
        (self.child.wait().unwrap(), self.text)
    }
}

#[test]
fn top_asks_for_a_larger_terminal_and_goes_on() {
    let place = Place::new("small-top");
    let program = Program::start(&place, "holds", HOLDS);
    let pid = program.pid();
    for args in [&["top", &pid] as &[&str], &["top"]] {
        let mut terminal = Terminal::open(SMALL, &mut craton(args));
        terminal.until("get PID");
        terminal.press("s ");
        terminal.press("q");
        let (status, text) = terminal.end();
        assert!(status.success(), "{text:?}");
        let screen = text.split("\x1b[H").nth(1).unwrap().split("\x1b[J").next().unwrap();
        let lines: Vec<&str> = screen.split("\r\n").map(|line| line.trim_end_matches("\x1b[K")).collect();
        let (columns, rows) = (usize::from(SMALL.0), usize::from(SMALL.1));
        assert!(lines.len() <= rows && lines.iter().all(|line| line.chars().count() <= columns), "{lines:?}");
        assert!(lines.join(" ").contains("craton top needs 60x15"), "{lines:?}");
    }
    assert!(program.end());
}

#[test]
fn the_other_commands_print_on_a_small_terminal_as_well() {
    let place = Place::new("small-others");
    let program = Program::start_with(&place, "holds", HOLDS, &["profile=16K"]);
    let pid = program.pid();
    let file = place.path("p.profile");
    let saved = said(&mut craton(["profile", &pid, "--save", &file]));
    assert_eq!(saved.status, 0, "{}", saved.err);
    let compare = ["compare", "--peers", "none", "--runs", "1", "--warmup", "0", "--", "true"];
    for (args, part) in [
        (&["run", "--stats", "--", "true"] as &[&str], "total"),
        (&compare, "craton"),
        (&["profile", &pid], "function"),
        (&["profile", &file], "function"),
        (&["get", &pid], "rss_bytes"),
        (&["core", "--pid", &pid, "stats"], "heap"),
        (&["run", "--sarif", "/nonexistent/x", "--", "true"], "cannot write"),
    ] {
        let (status, text) = Terminal::open(SMALL, &mut craton(args)).end();
        let is_refused = part == "cannot write";
        assert!(status.code() == Some(is_refused.into()) && text.contains(part), "{args:?}: {status} {text:?}");
    }
    let stats = Terminal::open(SMALL, &mut craton(["run", "--stats", "--", "true"])).end().1;
    let table = stats.lines().skip_while(|line| !line.starts_with("craton: processes served")).skip(1);
    assert!(table.clone().count() > 3, "{stats:?}");
    for line in table {
        assert!(line.trim_end().chars().count() <= 40, "one number beside pid and program: {line:?}");
    }
    assert!(program.end());
}

#[test]
fn the_prompt_of_core_works_on_a_small_terminal() {
    let place = Place::new("small-shell");
    let program = Program::start(&place, "holds", HOLDS);
    let mut command = craton(["core", "--pid", &program.pid(), "shell"]);
    let mut terminal = Terminal::open(SMALL, command.env("XDG_STATE_HOME", place.path("state")).env("TERM", "vt100"));
    // Keys pressed before the prompt is there get lost.
    for (keys, answer) in [("stats\r", "816"), ("nonsense\r", "there is no command")] {
        terminal.until("craton>");
        terminal.press(keys);
        terminal.until(answer);
    }
    terminal.until("craton>");
    terminal.press("\u{4}");
    let (status, text) = terminal.end();
    assert!(status.success(), "{text:?}");
    assert!(program.end());
}

#[test]
fn a_process_that_ends_while_top_watches_it_leaves_its_last_numbers() {
    let place = Place::new("watched");
    let program = Program::start(&place, "holds", HOLDS);
    let pid = program.pid();
    let mut terminal = Terminal::open((80, 24), &mut craton(["top", &pid, "--every", "0.1"]));
    terminal.until("(holds)");
    assert!(program.end());
    let (status, text) = terminal.end();
    let line = format!("craton: process {pid} (holds) has ended; it had last: heap ");
    assert!(status.success() && text.contains(&line), "{text:?}");
}

#[test]
fn a_key_of_top_shows_who_holds_the_memory() {
    let place = Place::new("holders");
    let program = Program::start_with(&place, "holds", HOLDS, &["profile=16K"]);
    let mut terminal = Terminal::open((80, 24), &mut craton(["top", &program.pid(), "--every", "0.2"]));
    for shown in ["size class", "with callees", "size class"] {
        terminal.until(shown);
        terminal.press("w");
    }
    terminal.until(" main ");
    terminal.press("q");
    let (status, text) = terminal.end();
    assert!(status.success(), "{text:?}");
    assert!(program.end());
}

/// A file that any user may execute.
fn open_to_all(place: &Place) -> String {
    let own = place.path("craton");
    // A program that a child has open for writing does not start.
    assert!(Command::new("cp").args([env!("CARGO_BIN_EXE_craton"), &own]).status().unwrap().success());
    fs::set_permissions(&own, fs::Permissions::from_mode(0o755)).unwrap();
    own
}

#[test]
fn another_users_process_is_not_read_and_the_sentence_says_who_may() {
    let place = Place::new("other-user");
    let program = Program::start(&place, "holds", HOLDS);
    let (own, pid) = (open_to_all(&place), program.pid());
    for args in [
        &["get", &pid] as &[&str],
        &["top", &pid],
        &["profile", &pid],
        &["core", "--pid", &pid, "stats"],
        &["set", &pid, "thp=never"],
    ] {
        let run = Command::new(&own).args(args).uid(65_534).gid(65_534).output();
        let Ok(output) = run else { return println!("skipped: this user may not become another one") };
        let said = into_said(output);
        assert!(said.status == 1 && said.out.is_empty(), "{args:?}: {}{}", said.out, said.err);
        assert!(said.err.contains("run this as its user or as root"), "{args:?}: {}", said.err);
        assert_eq!(said.err.lines().count(), 1, "{args:?}: {}", said.err);
    }
    assert!(program.end());
}

/// `None`: this user may make no PID namespace.
fn in_namespace(place: &Place, options: &[&str], script: &str) -> Option<crate::common::Said> {
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork"]).args(options).args(["sh", "-c", script, env!("CARGO_BIN_EXE_craton")]);
    command.arg(place.path("holds")).env("CRATON_LIBRARY", crate::common::library());
    let said = command.output().ok().map(into_said).filter(|said| !said.err.contains("unshare: "));
    if said.is_none() {
        println!("skipped: no PID namespace may be made here");
    }
    said
}

/// The program reads from a pipe that the script ends by its own end.
const START: &str = "mkfifo \"$1.in\" \"$1.out\"; \"$0\" run -- \"$1\" <\"$1.in\" >\"$1.out\" & inner=$!
    exec 3>\"$1.in\" 4<\"$1.out\"; read ready <&4;";

#[test]
fn a_process_of_another_pid_namespace_is_read_by_the_number_of_this_one() {
    let place = Place::new("namespace");
    place.compile("holds", &format!("{HEAD}{HOLDS}"), &["-w", "-ldl", "-lpthread"]);
    let inside = format!(
        "{START} \"$0\" get $inner pid; \"$0\" top $inner --once | head -n 1; \"$0\" core --pid $inner stats | head -n 1;
         \"$0\" profile $inner; \"$0\" get 999"
    );
    let Some(inside) = in_namespace(&place, &["--mount-proc"], &inside) else { return };
    let pid = inside.out.lines().next().unwrap_or_default().to_owned();
    assert!(pid.starts_with("pid ") && inside.out.contains("(holds)"), "{}{}", inside.out, inside.err);
    assert!(inside.err.contains("there is no process 999"), "{}", inside.err);
    assert!(!inside.err.contains("not running on Craton"), "{}", inside.err);
    ["in", "out"].iter().for_each(|end| fs::remove_file(place.path(&format!("holds.{end}"))).unwrap());

    // Without its own /proc the number is another process's, or none's.
    let confused =
        format!("{START} \"$0\" get $inner; \"$0\" top $inner; \"$0\" core --pid $inner stats; \"$0\" get 4194304");
    let confused = in_namespace(&place, &[], &confused).unwrap();
    let last = confused.err.lines().last().unwrap_or_default();
    assert!(
        last.contains("there is no process 4194304") && last.contains("mount -t proc proc /proc"),
        "{}",
        confused.err
    );
    ["in", "out"].iter().for_each(|end| fs::remove_file(place.path(&format!("holds.{end}"))).unwrap());

    // From outside, by the outer number.
    let outer = format!("{START} echo ready; read line; exit 0");
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--mount-proc", "sh", "-c", &outer, env!("CARGO_BIN_EXE_craton")]);
    command.arg(place.path("holds")).env("CRATON_LIBRARY", crate::common::library());
    let holder = Program::run(&mut command);
    let found = process_named("holds", &place.path("holds"));
    let whole = said(&mut craton(["get", &found, "pid"]));
    assert_eq!((whole.status, whole.err.as_str()), (0, ""), "{found}");
    assert!(whole.out.starts_with("pid ") && whole.out.trim_end() != format!("pid {found}"), "{}", whole.out);
    for args in [
        &["top", &found, "--once"] as &[&str],
        &["core", "--pid", &found, "stats"],
        &["core", "--pid", &found, "verify"],
    ] {
        let read = said(&mut craton(args));
        assert!(read.status == 0 && !read.out.is_empty(), "{args:?}: {}", read.err);
    }
    let one = said(&mut craton(["top", &found, "--once"])).out;
    assert!(one.starts_with(&format!("process {found} (holds)")), "{one}");
    let list = said(&mut craton(["top", "--once"])).out;
    let is_named = crate::common::library().ends_with("libcraton.so");
    assert_eq!(list.lines().any(|line| line.trim_start().starts_with(&format!("{found} "))), is_named, "{list}");
    assert!(holder.end());
}

#[test]
fn a_program_that_only_its_container_has_is_read_there() {
    let place = Place::new("container");
    place.compile("holds", &format!("{HEAD}{HOLDS}"), &["-w", "-ldl", "-lpthread"]);
    if in_namespace(&place, &["--mount-proc"], "mount -t tmpfs none /mnt").is_none_or(|said| said.status != 0) {
        return println!("skipped: nothing may be mounted here");
    }
    let script = format!(
        "mkdir \"$1.d\"; mount -t tmpfs none \"$1.d\"; cp \"$1\" \"$1.d/inner\"; set -- \"$1.d/inner\"
         export CRATON_OPTIONS=profile=16K; {START} echo ready; read line; exit 0"
    );
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--mount-proc", "sh", "-c", &script, env!("CARGO_BIN_EXE_craton")]);
    command.arg(place.path("holds")).env("CRATON_LIBRARY", crate::common::library());
    let holder = Program::run(&mut command);
    let inner = place.path("holds.d/inner");
    assert!(!fs::exists(&inner).unwrap());
    let found = process_named("inner", &inner);
    let profile = said(&mut craton(["profile", &found]));
    assert!(profile.out.contains(&format!(" main ({inner})")), "{}{}", profile.out, profile.err);
    assert!(holder.end());
}

#[test]
fn a_name_that_is_not_utf_8_is_read_as_any_other() {
    let place = Place::new("bytes");
    let program = place.compile("holds", &format!("{HEAD}{HOLDS}"), &["-w", "-ldl", "-lpthread"]);
    let path = |name: &[u8]| place.0.join(OsStr::from_bytes(name));
    fs::rename(program, path(b"h\xff")).unwrap();
    let file = path(b"gr\xfc\xdfe.profile");
    let mut command = craton(["run", "-o", "profile=16K"]);
    command.arg(OsString::from_vec([b"--profile=".as_slice(), file.as_os_str().as_bytes()].concat()));
    let program = Program::run(command.arg("--").arg(path(b"h\xff")));
    let pid = program.pid();
    for args in [
        &["core", "--pid", &pid, "stats"] as &[&str],
        &["core", "--pid", &pid, "users"],
        &["core", "--pid", &pid, "save", &place.path("core")],
        &["profile", &pid],
        &["get", &pid],
    ] {
        let said = said(&mut craton(args));
        assert_eq!((said.status, said.err.as_str()), (0, ""), "{args:?}");
    }
    assert!(program.end());
    let read = said(craton(["profile"]).arg(&file));
    assert_eq!((read.status, read.err.as_str()), (0, ""));
}

/// The number of a process by its name and its program's file.
fn process_named(name: &str, file: &str) -> String {
    let numbers = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let is_it = |path: &std::path::PathBuf| {
        let own = fs::read_to_string(path.join("comm")).unwrap_or_default();
        own.trim_end() == name && fs::read_link(path.join("exe")).is_ok_and(|exe| exe.as_os_str() == file)
    };
    let found = numbers.into_iter().find(is_it).expect("the program runs");
    found.file_name().unwrap().to_str().unwrap().to_owned()
}
