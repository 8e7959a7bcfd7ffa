use super::*;

const LINE: &str = "  7:\tbinding file a [0] to /usr/lib/libx.so.2 [0]: normal symbol `malloc' [GLIBC_2.2.5]";

#[test]
fn bindings_are_read() {
    assert_eq!(server(LINE), Some("/usr/lib/libx.so.2"));
    assert_eq!(server(&LINE.replace("`malloc'", "`malloc_trim'")), None);
    assert_eq!(server(&LINE.replace("/usr/lib/libx.so.2", "/with a [1] to/x.so")), Some("/with a [1] to/x.so"));
    assert_eq!(server("  7:\tcalling init: /usr/lib/libx.so.2"), None);
}

#[test]
fn the_largest_process_must_have_the_library_mapped() {
    let mut watch = Watch::new(Path::new("/usr/lib/libx.so"));
    let mut look = |pid, rss_bytes, maps: &str, name: &str| {
        watch.record(pid, rss_bytes, maps, || format!("{name}\n"));
        watch.largest_without()
    };
    let served = "7f0-7f1 r-xp 0 0 /usr/lib/libc.so.6\n7f2-7f3 r-xp 0 0 /usr/lib/libx.so\n";
    let cleared = "7f0-7f1 r-xp 0 0 /usr/lib/libc.so.6\n";
    for _ in 0..2 {
        assert_eq!(look(1, 900, served, "sh"), None);
    }
    assert_eq!(look(3, 1000, "400-500 r-xp 0 0 /bin/static\n", "static"), None, "it may be starting");
    assert_eq!(look(3, 1000, "400-500 r-xp 0 0 /bin/static\n", "static").as_deref(), Some("static"));
    assert_eq!(look(4, 2000, cleared, "cleared").as_deref(), Some("static"));
    assert_eq!(look(4, 1500, cleared, "cleared").as_deref(), Some("cleared"));
    let mut bare = Watch::new(Path::new("libx.so.4"));
    for _ in 0..2 {
        let maps = "7f0-7f1 r-xp 0 0 /usr/lib/libc.so.6\n7f2-7f3 r-xp 0 0 /usr/lib/libx.so.4.5\n";
        bare.record(1, 900, maps, || "sh".to_owned());
    }
    assert_eq!((bare.seen.len(), bare.largest_without()), (1, None));
}

#[test]
fn a_program_without_an_interpreter_is_static() {
    let vector = |pairs: &[[u64; 2]]| pairs.iter().flatten().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>();
    assert!(is_static(&vector(&[[6, 4096], [7, 0], [9, 0x40_1000], [0, 0]])));
    assert!(is_static(&vector(&[[9, 0x40_1000], [0, 0]])));
    assert!(!is_static(&vector(&[[7, 0x7f00_0000], [9, 0x40_1000], [0, 0]])));
    assert!(!is_static(&[]), "it is between two programs");
    assert!(!is_static(&fs::read("/proc/self/auxv").expect("this process has one")));
}

#[test]
fn a_link_to_a_library_is_that_library() {
    let scratch = Scratch::new("a test of links").expect("a directory");
    let (file, link) = (scratch.path().join("libx.so.4.5"), scratch.path().join("libx.so.4"));
    fs::write(&file, "").expect("a file");
    std::os::unix::fs::symlink(&file, &link).expect("a link");
    let mut watch = Watch::new(&link);
    let real = file.canonicalize().expect("the file is there");
    watch.record(
        1,
        900,
        &format!("7f0-7f1 r-xp 0 0 /usr/lib/libc.so.6\n7f2-7f3 r-xp 0 0 {}\n", real.display()),
        || "x".to_owned(),
    );
    assert_eq!(watch.largest_without(), None);
}

#[test]
fn a_library_is_known_by_its_path_or_by_its_bare_name() {
    let mut service = Service::default();
    service.add(&format!("{LINE}\n{LINE}\n"));
    service.add("");
    assert_eq!(service.processes, 2);
    assert_eq!(service.served_by(Path::new("/usr/lib/libx.so.2")), 1);
    assert_eq!(service.served_by(Path::new("libx.so.2")), 1);
    assert_eq!(service.served_by(Path::new("/lib/libx.so.2")), 0);
    assert_eq!(service.mainly(), Some("/usr/lib/libx.so.2"));
    assert_eq!(Service::default().mainly(), None);
}
