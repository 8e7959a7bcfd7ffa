use super::*;

#[test]
fn paths_become_uris() {
    assert_eq!(encoded("/a b/ä%.c"), "/a%20b/%C3%A4%25.c");
    let inside = artifact("/src/a b.c", Path::new("/src"));
    assert_eq!((inside["uri"].as_str(), inside["uriBaseId"].as_str()), (Some("a%20b.c"), Some(ROOT)));
    let outside = artifact("/usr/include/x.h", Path::new("/src"));
    assert_eq!((outside["uri"].as_str(), outside.get("uriBaseId")), (Some("file:///usr/include/x.h"), None));
}

#[test]
fn brackets_of_a_message_are_no_links() {
    assert_eq!(escaped("operator new[]"), "operator new\\[\\]");
}
