//! Bad files and options give one line that names them, and change nothing.

use crate::kill::folder;
use crate::process::{Client, Reply, Running, run};
use std::fs;
use std::path::Path;

fn refused(file: &Path, options: &[&str], status: i32) -> String {
    let file = file.to_str().unwrap();
    let output = run(&[&["--file", file, "--port", "0"], options].concat());
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(status), "{text}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    text
}

#[test]
fn files_that_are_no_heap_are_refused_and_stay() {
    let folder = tempfile::tempdir_in(folder()).unwrap();
    let path = |name: &str| folder.path().join(name);
    assert!(refused(&path("no/such/folder"), &[], 1).contains("no such file"));
    assert!(refused(folder.path(), &[], 1).starts_with("craton-kv: "));
    for (name, contents) in [("empty", vec![]), ("odd", vec![1; 1000]), ("text", b"text".repeat(1024 * 512))] {
        fs::write(path(name), &contents).unwrap();
        let text = refused(&path(name), &[], 1);
        assert!(text.lines().count() == 1 && text.contains(name), "{text}");
        assert!(fs::read(path(name)).unwrap() == contents, "{name} has changed");
    }
}

#[test]
fn a_file_in_use_and_a_port_in_use_are_named() {
    let folder = tempfile::tempdir_in(folder()).unwrap();
    let file = folder.path().join("one.heap");
    let server = Running::start(&file, &[]);
    assert!(refused(&file, &[], 1).contains("open already"));
    let other = folder.path().join("two.heap");
    let text = run(&["--file", other.to_str().unwrap(), "--port", &server.port.to_string()]);
    let text = String::from_utf8_lossy(&text.stderr).into_owned();
    assert!(text.contains(&format!("cannot listen on 127.0.0.1:{}", server.port)), "{text}");
    assert!(!other.exists(), "a heap that was not served stays behind");
    let mut client = Client::new(server.port).unwrap();
    assert_eq!(client.ask("SET a 1"), Some(Reply::Line("+OK".to_owned())));
    assert_eq!(server.terminate(), 0);
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(|it| it.unwrap().file_name()).collect();
    names.sort();
    names.into_iter().map(|name| name.into_string().unwrap()).collect()
}

#[test]
fn limits_and_names_that_the_system_refuses_are_named_and_leave_no_file() {
    let folder = tempfile::tempdir_in(folder()).unwrap();
    let file = folder.path().join("large.heap");
    for options in [&[][..], &["--sync", "always"]] {
        let text = refused(&file, &[&["--most", "1000T"], options].concat(), 1);
        assert!(text.contains("large.heap: no address space for --most of 1099511627776000 bytes"), "{text}");
    }
    let text = refused(&folder.path().join("n".repeat(300)), &[], 1);
    assert!(text.contains("the path is too long"), "{text}");
    // The journal's name is too long.
    let text = refused(&folder.path().join("n".repeat(250)), &["--sync", "always"], 1);
    assert!(text.contains("the path is too long"), "{text}");
    assert_eq!(names(folder.path()), [""; 0]);
}

#[test]
fn a_closed_heap_is_one_file_and_a_lost_log_is_refused() {
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let file = folder.path().join("log.heap");
    let sync = &["--sync", "always"][..];
    let ask = |server: &Running, line: &str| Client::new(server.port).unwrap().ask(line);
    let line = |text: &str| Some(Reply::Line(text.to_owned()));
    assert_eq!(Running::start(&file, sync).terminate(), 0);
    assert_eq!(names(folder.path()), ["log.heap"]);
    // Older logs do not matter to a closed heap.
    let server = Running::start(&file, sync);
    assert_eq!(ask(&server, "SET a 1"), line("+OK"));
    server.kill();
    let logs = ["log0", "log1"].map(|end| file.with_added_extension(end));
    let kept = logs.clone().map(|log| fs::read(log).unwrap());
    let server = Running::start(&file, sync);
    assert_eq!(ask(&server, "DBSIZE"), line(":1"));
    for i in 2..40 {
        assert_eq!(ask(&server, &format!("SET key:{i:02} {i}")), line("+OK"));
    }
    server.kill();
    let whole = logs.clone().map(|log| fs::read(log).unwrap());
    let restore =
        |logs_of: &[Vec<u8>; 2]| logs.iter().zip(logs_of).for_each(|(log, bytes)| fs::write(log, bytes).unwrap());
    let used = (0..2).find(|i| whole[*i].windows(6).any(|text| text == b"key:39")).unwrap();
    let name = logs[used].display().to_string();
    // Missing, older, damaged in its head or in a record.
    let mut head = whole.clone();
    head[used][20] ^= 1;
    let mut record = whole.clone();
    let at = record[used].windows(6).position(|text| text == b"key:20").unwrap();
    record[used][at] ^= 1;
    for (logs_of, what) in [(&kept, "is not the log"), (&head, "is not the log"), (&record, "is damaged at byte")] {
        restore(logs_of);
        let text = refused(&file, sync, 1);
        assert!(text.contains(&name) && text.contains(what) && text.contains("--lose-log"), "{text}");
    }
    logs.iter().for_each(|log| fs::remove_file(log).unwrap());
    assert!(refused(&file, sync, 1).contains(&name));
    // Records before the damage are there.
    restore(&record);
    let server = Running::start(&file, &["--sync", "always", "--lose-log"]);
    assert_eq!(ask(&server, "DBSIZE"), line(":19"));
    assert_eq!(server.terminate(), 0);
    assert_eq!(names(folder.path()), ["log.heap"]);
    restore(&kept);
    let server = Running::start(&file, sync);
    assert_eq!(ask(&server, "DBSIZE"), line(":19"));
}

#[test]
fn files_of_a_heap_that_is_not_there_are_not_taken_for_a_new_one() {
    let folder = tempfile::tempdir_in(folder()).unwrap();
    let (file, away) = (folder.path().join("a.heap"), folder.path().join("away"));
    let sync = &["--sync", "always"][..];
    let server = Running::start(&file, sync);
    assert_eq!(Client::new(server.port).unwrap().ask("SET a 1"), Some(Reply::Line("+OK".to_owned())));
    server.kill();
    fs::rename(&file, &away).unwrap();
    let before = names(folder.path());
    for options in [sync, &[]] {
        let text = refused(&file, options, 1);
        assert!(
            text.contains("a.heap: no such file, but ") && text.contains("a.heap.log0 is there: restore"),
            "{text}"
        );
    }
    assert_eq!(names(folder.path()), before);
    fs::rename(&away, &file).unwrap();
    let server = Running::start(&file, sync);
    assert_eq!(Client::new(server.port).unwrap().ask("DBSIZE"), Some(Reply::Line(":1".to_owned())));
}

#[test]
fn cut_files_are_named() {
    let folder = tempfile::tempdir_in(folder()).unwrap();
    let file = folder.path().join("a.heap");
    let sync = &["--sync", "always"][..];
    let ask = |server: &Running, line: &str| Client::new(server.port).unwrap().ask(line);
    let line = |text: &str| Some(Reply::Line(text.to_owned()));
    let server = Running::start(&file, sync);
    for i in 1..=100 {
        assert_eq!(ask(&server, &format!("SET key:{i} {i}")), line("+OK"));
    }
    server.kill();
    let beside = |end: &str| folder.path().join(format!("a.heap.{end}"));
    let cut = |end: &str, len: u64| fs::File::options().write(true).open(beside(end)).unwrap().set_len(len).unwrap();
    let whole = ["journal", "log0", "log1"].map(|end| (end, fs::read(beside(end)).unwrap()));
    let cuts: [(&[&str], u64, &str); 4] = [
        (&["log0", "log1"], 100, "was cut to 100 of "),
        (&["journal"], 0, "a.heap.journal: is missing or empty"),
        (&["journal"], 100, "the journal is none"),
        (&["journal"], 4096, "a.heap.journal: has no sync point"),
    ];
    for (ends, len, what) in cuts {
        ends.iter().for_each(|end| cut(end, len));
        let text = refused(&file, sync, 1);
        assert!(text.contains(what), "{what}: {text}");
        whole.iter().for_each(|(end, bytes)| fs::write(beside(end), bytes).unwrap());
    }
    let server = Running::start(&file, sync);
    assert_eq!(ask(&server, "DBSIZE"), line(":100"));
}

#[test]
fn a_lost_journal_is_named_and_a_link_finds_it() {
    let folder = tempfile::tempdir_in(folder()).unwrap();
    let (file, link) = (folder.path().join("a.heap"), folder.path().join("link"));
    std::os::unix::fs::symlink("a.heap", &link).unwrap();
    let sync = &["--sync", "always"][..];
    let ask = |server: &Running, line: &str| Client::new(server.port).unwrap().ask(line);
    let line = |text: &str| Some(Reply::Line(text.to_owned()));
    // The file's own state is that of the first end.
    let server = Running::start(&file, sync);
    assert_eq!(ask(&server, "SET a 1"), line("+OK"));
    assert_eq!(server.terminate(), 0);
    let server = Running::start(&link, sync);
    assert_eq!(ask(&server, "SET b 1"), line("+OK"));
    server.kill();
    assert!(refused(&link, &[], 1).contains("was used with --sync"));
    let server = Running::start(&file, sync);
    assert_eq!(ask(&server, "DBSIZE"), line(":2"));
    server.kill();
    let journal = folder.path().join("a.heap.journal");
    fs::remove_file(&journal).unwrap();
    let text = refused(&file, sync, 1);
    assert!(text.contains("a.heap.journal: is missing") && text.contains("--lose-log"), "{text}");
    let server = Running::start(&file, &["--sync", "always", "--lose-log"]);
    assert_eq!(ask(&server, "DBSIZE"), line(":1"));
    assert_eq!(server.terminate(), 0);
    assert_eq!(names(folder.path()), ["a.heap", "link"]);
}

#[test]
fn a_link_to_nothing_is_named_and_leaves_no_file() {
    let folder = tempfile::tempdir_in(folder()).unwrap();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink("nothing", &link).unwrap();
    for options in [&[][..], &["--sync", "always"]] {
        assert!(refused(&link, options, 1).contains("link: a symbolic link to a file that is not there"));
    }
    assert_eq!(names(folder.path()), ["link"]);
}

#[test]
fn sync_in_memory_promises_no_power_failure() {
    if folder() != Path::new("/dev/shm") {
        println!("skipped: no file system in memory here");
        return;
    }
    let folder = tempfile::tempdir_in(folder()).unwrap();
    let server = Running::start(&folder.path().join("memory.heap"), &["--sync", "always"]);
    let mut client = Client::new(server.port).unwrap();
    let Some(Reply::Bulk(Some(text))) = client.ask("INFO persistence") else { panic!("no text") };
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(text.contains("acknowledged_writes_survive:the end of the process, but no power failure"), "{text}");
    assert_eq!(server.terminate(), 0);
}

#[test]
fn a_full_disk_refuses_writes_serves_reads_and_goes_on_when_it_has_room() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_str().unwrap();
    let mount = "mount -t tmpfs -o size=24m none \"$0\" && exec \"$@\"";
    let mut command = std::process::Command::new("unshare");
    command.args(["-rm", "sh", "-c", mount, place]).arg(env!("CARGO_BIN_EXE_craton-kv"));
    command.args(["--file", &format!("{place}/full.heap"), "--port", "0", "--sync", "always", "--log", "1M"]);
    command.stderr(std::process::Stdio::null());
    let Ok(server) = Running::of(command) else {
        println!("skipped: no user namespaces or mounts here");
        return;
    };
    let filler = format!("/proc/{}/root{place}/filler", server.id());
    let ok = Some(Reply::Line("+OK".to_owned()));
    let mut client = Client::new(server.port).unwrap();
    assert_eq!(client.ask("SET first 1"), ok);
    assert!(fs::write(&filler, vec![1; 32 << 20]).is_err());
    let value = "v".repeat(1000);
    let mut written = 0;
    let refusal = loop {
        match client.ask(&format!("SET n {value}{written}")) {
            answer if answer == ok => written += 1,
            Some(Reply::Line(line)) => break line,
            other => panic!("{other:?}"),
        }
    };
    assert!(refusal.starts_with("-OOM not durable: No space left"), "{refusal}");
    // Needs a sync point of the heap.
    assert!(written > 1000, "{written}");
    let mut client = Client::new(server.port).unwrap();
    assert_eq!(client.ask("GET first"), Some(Reply::Bulk(Some(b"1".to_vec()))));
    assert!(matches!(client.ask("DEL first"), Some(Reply::Line(line)) if line.starts_with("-OOM")));
    fs::remove_file(&filler).unwrap();
    while client.ask("SET last 1") != ok {
        // A write under way ends its connection.
        client = Client::new(server.port).unwrap();
    }
    let Some(Reply::Bulk(Some(last))) = client.ask("GET n") else { panic!("no value") };
    let possible = [written - 1, written].map(|n| format!("{value}{n}").into_bytes());
    assert!(possible.contains(&last), "{written}");
    assert_eq!(server.terminate(), 0);
}

#[test]
fn wrong_options_are_usage() {
    let folder = tempfile::tempdir_in(folder()).unwrap();
    let file = folder.path().join("never.heap");
    for options in
        [&["--port", "99999"][..], &["--most", "1M"], &["--sync", "soon"], &["--threads", "x"], &["--listen", "x"]]
    {
        let text = refused(&file, options, 2);
        assert!(text.contains(options[0]), "{text}");
    }
    assert!(run(&[]).status.code() == Some(2));
    assert!(!file.exists());
    let help = run(&["--help"]);
    assert!(help.status.success() && String::from_utf8_lossy(&help.stdout).contains("Example: craton-kv --file"));
}

#[test]
fn a_heap_that_is_full_refuses_writes_and_goes_on() {
    let folder = tempfile::tempdir_in(folder()).unwrap();
    let file = folder.path().join("full.heap");
    let server = Running::start(&file, &["--most", "16M"]);
    let mut client = Client::new(server.port).unwrap();
    let value = "v".repeat(10_000);
    let mut keys = 0;
    let refusal = loop {
        match client.ask(&format!("SET key:{keys} {value}")) {
            Some(Reply::Line(line)) if line == "+OK" => keys += 1,
            other => break other,
        }
    };
    assert_eq!(
        refusal,
        Some(Reply::Line("-OOM no room in the heap: it has reached --most, or the disk is full".to_owned()))
    );
    assert!(keys > 500, "{keys}");
    assert_eq!(client.ask("DBSIZE"), Some(Reply::Line(format!(":{keys}"))));
    assert_eq!(client.ask("DEL key:1 key:2"), Some(Reply::Line(":2".to_owned())));
    assert_eq!(client.ask(&format!("SET key:1 {value}")), Some(Reply::Line("+OK".to_owned())));
    assert_eq!(server.terminate(), 0);
    let server = Running::start(&file, &["--most", "16M"]);
    let mut client = Client::new(server.port).unwrap();
    assert_eq!(client.ask("DBSIZE"), Some(Reply::Line(format!(":{}", keys - 1))));
}

#[test]
fn flipped_bits_are_refused_or_do_no_harm() {
    let folder = tempfile::tempdir_in(folder()).unwrap();
    let file = folder.path().join("flips.heap");
    let server = Running::start(&file, &[]);
    let mut client = Client::new(server.port).unwrap();
    for i in 0..2000 {
        client.ask(&format!("SET key:{i} {i}"));
    }
    assert_eq!(server.terminate(), 0);
    let whole = fs::read(&file).unwrap();
    let used: Vec<usize> = (0..whole.len()).filter(|at| whole[*at] != 0).collect();
    let mut refusals = 0;
    for n in 0..60 {
        let mut bytes = whole.clone();
        bytes[used[n * used.len() / 60]] ^= 1 << (n % 8);
        fs::write(&file, &bytes).unwrap();
        let output = crate::process::command()
            .arg("--file")
            .arg(&file)
            .args(["--port", "0"])
            .stdout(std::process::Stdio::piped())
            .spawn();
        let mut child = output.unwrap();
        let mut greeting = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut greeting).unwrap();
        if greeting.is_empty() {
            assert_eq!(child.wait().unwrap().code(), Some(1), "flip {n}: an error, no crash");
            refusals += 1;
            continue;
        }
        let port = greeting.split("127.0.0.1:").nth(1).unwrap().split(',').next().unwrap().parse().unwrap();
        let mut client = Client::new(port).unwrap();
        for i in 0..2000 {
            assert!(client.ask(&format!("GET key:{i}")).is_some(), "flip {n} ends the server");
        }
        client.ask("SET key:1 x").unwrap();
        client.ask("DBSIZE").unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }
    println!("{refusals} of 60 files refused");
}
