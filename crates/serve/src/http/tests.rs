use super::*;

fn whole(text: &str) -> (Request, usize, bool) {
    match parse(text.as_bytes()) {
        Head::Whole { request, length, goes_on } => (request, length, goes_on),
        Head::Part => panic!("{text:?} is a part"),
        Head::Wrong(status, why) => panic!("{text:?}: {status} {why}"),
    }
}

fn status(text: &str) -> u16 {
    match parse(text.as_bytes()) {
        Head::Wrong(status, _) => status,
        _ => 0,
    }
}

#[test]
fn a_request_has_path_query_and_host() {
    let (request, length, goes_on) = whole("GET /api/x?a=1&b&c=2=3 HTTP/1.1\r\nhost: here:1\r\n\r\nGET");
    assert_eq!((request.path.as_str(), request.host.as_deref()), ("/api/x", Some("here:1")));
    assert_eq!((request.value("a"), request.value("b"), request.value("c")), (Some("1"), Some(""), Some("2=3")));
    assert!(goes_on && length == 49, "{length}");
    assert!(request.value("d").is_none());
}

#[test]
fn a_body_or_an_old_version_ends_the_connection() {
    assert!(!whole("GET / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello").2);
    assert!(!whole("GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n").2);
    assert!(!whole("GET / HTTP/1.0\r\n\r\n").2);
    assert!(!whole("GET / HTTP/1.1\r\nConnection: Close\r\n\r\n").2);
}

#[test]
fn other_methods_and_other_bytes_are_refused() {
    for method in ["POST", "PUT", "DELETE", "HEAD", "OPTIONS"] {
        assert_eq!(status(&format!("{method} / HTTP/1.1\r\n\r\n")), 405, "{method}");
    }
    assert_eq!(status("\u{16}\u{3}\u{1}\r\n\r\n"), 400);
    assert_eq!(status(&format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(HEADERS + 1))), 431);
    assert!(matches!(parse(b"GET / HTTP/1.1\r\nHost: x\r\n"), Head::Part));
}
