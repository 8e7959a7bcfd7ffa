use super::*;

#[test]
fn lines_come_whole_and_in_order_and_the_sender_waits_until_it_was_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stats");
    let listener = Listener::start(path.clone(), true).unwrap();
    for line in ["one\n", "two\n"] {
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.write_all(&line.as_bytes()[..2]).unwrap();
        stream.write_all(&line.as_bytes()[2..]).unwrap();
        let mut answer = Vec::new();
        assert_eq!(stream.read_to_end(&mut answer).unwrap(), 0, "closed");
    }
    let sent = listener.end();
    let lines: Vec<&[u8]> = sent.iter().map(|sent| sent.line.as_slice()).collect();
    assert_eq!(lines, [b"one\n", b"two\n"]);
    // This process does not run on Craton.
    assert!(sent.iter().all(|sent| sent.ledger.is_none()));
    assert!(rss_pages(std::process::id()) > 0);
}
