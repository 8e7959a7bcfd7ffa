use super::*;

fn named(name: &str) -> (String, Option<String>, Option<u32>) {
    let Named { function, file, line } = Named::of(name);
    (function, file, line)
}

#[test]
fn a_later_function_replaces_what_it_overlaps() {
    let map =
        PerfMap::parse("1000 100 first\n2000 10 second\nno line\n1080 1000 third\n0x5000 8 last one\n6000 0 none\n");
    let name = |at| map.find(at).map(|named| named.function);
    assert_eq!(name(0x0fff), None);
    assert_eq!((name(0x1000), name(0x107f)), (Some("first".into()), Some("first".into())));
    assert_eq!((name(0x1080), name(0x2008)), (Some("third".into()), Some("third".into())));
    assert_eq!((name(0x5007), name(0x5008), name(0x6000)), (Some("last one".into()), None, None));
}

#[test]
fn names_of_run_times_have_their_place() {
    assert_eq!(named("py::load:/srv/app.py"), ("load".into(), Some("/srv/app.py".into()), None));
    assert_eq!(named("LazyCompile:~fill /srv/app.js:3:14"), ("fill".into(), Some("/srv/app.js".into()), Some(3)));
    assert_eq!(named("JS:* file:///srv/x.mjs:12:1"), ("(anonymous)".into(), Some("/srv/x.mjs".into()), Some(12)));
    assert_eq!(named("Lcom/acme/Main;::run"), ("Lcom/acme/Main;::run".into(), None, None));
    assert_eq!(named("Builtin:ArrayPush"), ("Builtin:ArrayPush".into(), None, None));
}
