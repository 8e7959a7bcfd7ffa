use super::*;
use std::thread::JoinHandle;

/// Returns the other side.
fn peer(said: &'static [u8]) -> (UnixStream, JoinHandle<usize>) {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    ours.set_read_timeout(Some(PATIENCE)).unwrap();
    let peer = std::thread::spawn(move || {
        theirs.write_all(said).unwrap();
        theirs.shutdown(std::net::Shutdown::Write).unwrap();
        let mut heard = Vec::new();
        theirs.read_to_end(&mut heard).unwrap();
        heard.len()
    });
    (ours, peer)
}

/// Wants its byte back.
struct Echo;

impl Dialogue for Echo {
    fn next(&mut self, number: u64, request: &mut Vec<u8>, answer: &mut Vec<u8>) {
        request.push(b'a' + number as u8);
        answer.push(b'a' + number as u8);
    }

    fn farewell(&self) -> &'static [u8] {
        b"bye"
    }
}

fn echo(said: &'static [u8], requests: u64) -> (Result<(), String>, usize) {
    let (mut stream, peer) = peer(said);
    let result = drive(&mut stream, &mut Echo, requests);
    drop(stream);
    (result, peer.join().unwrap())
}

#[test]
fn a_right_answer_passes_and_every_request_is_sent() {
    assert_eq!(echo(b"abcde", 5), (Ok(()), 5));
    assert_eq!(echo(b"", 0), (Ok(()), 0));
}

#[test]
fn a_wrong_answer_is_told_with_both() {
    let why = echo(b"abXde", 5).0.unwrap_err();
    assert!(why.contains("\"Xde\" instead of \"cde\""), "{why}");
}

#[test]
fn a_short_answer_is_not_taken_for_a_right_one() {
    let why = echo(b"abc", 5).0.unwrap_err();
    assert!(why.contains("closed the connection"), "{why}");
}

#[test]
fn a_server_that_does_not_end_is_an_error() {
    for (said, good) in [(&b""[..], true), (b"ERROR\r\n", false)] {
        let (stream, peer) = peer(said);
        let result = end(stream, &Echo, Path::new("/nonexistent/socket"));
        assert_eq!(result.is_ok(), good, "{result:?}");
        assert_eq!(peer.join().unwrap(), 3);
    }
}

#[test]
fn nobody_waits_for_a_server_that_has_ended() {
    let mut child = std::process::Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    let why = connect(Path::new("/nonexistent/socket"), Some(child.id())).unwrap_err();
    assert!(why.contains("ended"), "{why}");
}

/// Requests and answers.
fn said(name: &str, seed: u64, requests: u64) -> (Vec<u8>, Vec<u8>) {
    let mut dialogue = dialogue(name, seed).unwrap();
    let (mut request, mut answer) = (Vec::new(), Vec::new());
    (0..requests).for_each(|number| dialogue.next(number, &mut request, &mut answer));
    dialogue.last(&mut request, &mut answer);
    (request, answer)
}

#[test]
fn a_dialogue_depends_on_its_seed_alone() {
    for name in DIALOGUES {
        assert_eq!(said(name, 1, 500), said(name, 1, 500), "{name}");
        assert_ne!(said(name, 1, 500), said(name, 2, 500), "{name}");
    }
    assert!(dialogue("no-such", 1).is_none());
}

#[test]
fn the_five_elements_come_back_in_reverse() {
    let (request, answer) = said("redis-list", 1, 1);
    let words = |text: &[u8]| -> Vec<String> {
        let text = String::from_utf8(text.to_vec()).unwrap();
        text.split("\r\n").filter(|w| w.starts_with("0-")).map(str::to_owned).collect()
    };
    let mut pushed = words(&request);
    pushed.reverse();
    assert_eq!((pushed.len(), &pushed), (5, &words(&answer)));
}

#[test]
fn memcached_answers_are_in_its_protocol() {
    let answer = said("memcached", 1, 20_000).1;
    for part in [&b"STORED\r\n"[..], b"VALUE key:", b"\r\nEND\r\n", b"DELETED\r\n", b"NOT_FOUND\r\n"] {
        assert!(answer.windows(part.len()).any(|w| w == part), "{}", part.escape_ascii());
    }
}
