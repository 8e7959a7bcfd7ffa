use super::*;

#[test]
fn an_address_may_lack_port_or_number() {
    for (text, meant) in [
        ("8080", "127.0.0.1:8080"),
        ("0", "127.0.0.1:0"),
        ("0.0.0.0", "0.0.0.0:4327"),
        ("10.0.0.1:80", "10.0.0.1:80"),
        ("localhost:9", "127.0.0.1:9"),
        ("::1", "[::1]:4327"),
        ("[::1]:80", "[::1]:80"),
        ("[::]", "[::]:4327"),
    ] {
        assert_eq!(address(text).unwrap().to_string(), meant, "{text}");
    }
    for text in ["", ":", ":80", "here", "1.2.3:80", "127.0.0.1:65536", "-1", "127.0.0.1:", "http://localhost"] {
        assert!(address(text).is_err(), "{text}");
    }
}

#[test]
fn names_have_no_signs_that_mean_something_else() {
    assert!(host("heap.example").is_ok() && experiment("limits=90%").is_ok());
    for text in ["", "a:80", "a b", "a/b"] {
        assert!(host(text).is_err(), "{text}");
    }
    assert!(experiment("").is_err() && experiment("a b").is_err() && experiment(&"a".repeat(65)).is_err());
}
