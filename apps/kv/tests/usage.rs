//! Bad files and options: one line that names them, and nothing has changed.

use crate::kill::folder;
use crate::process::{Client, Reply, Running, run};
use std::fs;
use std::path::Path;

/// Runs on a file; the one line of the error.
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
    let mut client = Client::new(server.port).unwrap();
    assert_eq!(client.ask("SET a 1"), Some(Reply::Line("+OK".to_owned())));
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
    assert_eq!(refusal, Some(Reply::Line("-OOM no room in the heap".to_owned())));
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
