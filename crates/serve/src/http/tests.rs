use super::*;

fn whole(text: &str) -> (Request, usize, bool) {
    match parse(text.as_bytes()) {
        Head::Whole { request, length, goes_on, .. } => (request, length, goes_on),
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
fn an_old_version_or_the_client_ends_the_connection() {
    assert!(!whole("GET / HTTP/1.0\r\n\r\n").2);
    assert!(whole("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").2);
    assert!(!whole("GET / HTTP/1.1\r\nConnection: Close\r\n\r\n").2);
}

#[test]
fn a_body_is_refused_before_it_comes() {
    let with = |header: &str| status(&format!("GET / HTTP/1.1\r\n{header}\r\n\r\n"));
    for header in ["Content-Length: 5", "Content-Length: 0\r\nContent-Length: 5", "Transfer-Encoding: chunked"] {
        assert_eq!(with(header), 413, "{header}");
    }
    for header in ["Content-Length:", "Content-Length: -1", "Content-Length: 5, 5", "Content-Length: 0x0"] {
        assert_eq!(with(header), 400, "{header}");
    }
    assert!(whole("GET / HTTP/1.1\r\nContent-Length: 00\r\n\r\n").2);
}

#[test]
fn two_hosts_are_refused_even_if_they_are_the_same() {
    assert_eq!(status("GET / HTTP/1.1\r\nHost: localhost\r\nhost: evil.example\r\n\r\n"), 400);
    assert_eq!(status("GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n"), 400);
}

#[test]
fn other_methods_versions_and_other_bytes_are_refused() {
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "get"] {
        assert_eq!(status(&format!("{method} / HTTP/1.1\r\n\r\n")), 405, "{method}");
    }
    for version in ["HTTP/1.2", "HTTP/2.0", "HTTP/0.9"] {
        assert_eq!(status(&format!("GET / {version}\r\n\r\n")), 505, "{version}");
    }
    let Head::Whole { method, .. } = parse(b"HEAD / HTTP/1.1\r\n\r\n") else { panic!("HEAD is refused") };
    assert_eq!(method, Method::Head);
    assert_eq!(status("\u{16}\u{3}\u{1}\r\n\r\n"), 400);
    assert_eq!(status(&format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(HEADERS + 1))), 431);
    assert!(matches!(parse(b"GET / HTTP/1.1\r\nHost: x\r\n"), Head::Part));
}
