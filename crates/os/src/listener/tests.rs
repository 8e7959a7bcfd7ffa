extern crate std;

use crate::process::append_to_file;
use std::format;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixListener;

#[test]
fn a_listener_gets_the_text_and_lets_the_process_go_on() {
    let path = std::env::temp_dir().join(format!("craton-os-listener-{}", std::process::id()));
    let listener = UnixListener::bind(&path).unwrap();
    let ended = [path.as_os_str().as_bytes(), &[0]].concat();
    let teller = std::thread::spawn({
        let ended = ended.clone();
        move || append_to_file(&ended, b"a line\n")
    });
    let (mut stream, _) = listener.accept().unwrap();
    let mut text = [0; 7];
    stream.read_exact(&mut text).unwrap();
    assert_eq!(&text, b"a line\n");
    assert!(!teller.is_finished(), "it waits");
    // An answer is no end.
    stream.write_all(b"wait").unwrap();
    drop(stream);
    assert!(teller.join().unwrap());
    drop(listener);
    assert!(!append_to_file(&ended, b"a line\n"), "the listener has gone");
    std::fs::remove_file(&path).unwrap();
}
