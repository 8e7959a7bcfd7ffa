use super::*;

fn head(class: u8, order: u8, kind: u16, machine: u16) -> Vec<u8> {
    let half = |n: u16| if order == 1 { n.to_le_bytes() } else { n.to_be_bytes() };
    [MAGIC, &[class, order, 1, 0], &[0; 8], &half(kind), &half(machine)].concat()
}

fn says(bytes: &[u8]) -> Result<(), String> {
    // Each test has a thread.
    let name = format!("craton-shared-object-{}-{:?}", std::process::id(), std::thread::current().id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, bytes).unwrap();
    let said = check(&path);
    std::fs::remove_file(&path).unwrap();
    said
}

#[test]
fn a_shared_library_for_this_machine_can_be_preloaded() {
    // Position-independent programs are shared objects.
    let own = Head::read(Path::new("/proc/self/exe")).unwrap().unwrap();
    assert_eq!(says(&head(own.class, own.order, DYNAMIC, own.machine)), Ok(()));
}

#[test]
fn what_is_none_is_told_with_the_reason() {
    let whole = head(2, 1, DYNAMIC, 62);
    for bytes in
        [b"".as_slice(), b"#!/bin/sh\nexit 0 # a script\n", &whole[..19], b"!<arch>\nlibcraton.a of some length"]
    {
        assert_eq!(says(bytes), Err("is no shared library (it does not begin as one)".to_owned()));
    }
    assert_eq!(says(&head(2, 1, 1, 62)), Err("is no shared library (it is an ELF file of type 1, not 3)".to_owned()));
    for (class, order, number, name) in
        [(2, 2, 21, "ELF machine 21, 64 bits"), (1, 1, 40, "ELF machine 40, 32 bits"), (1, 1, 3, "i386, 32 bits")]
    {
        let why = says(&head(class, order, DYNAMIC, number)).unwrap_err();
        assert!(why.starts_with(&format!("is a shared library for another machine ({name}, not ")), "{why}");
    }
}

#[test]
fn what_is_no_file_is_told() {
    assert_eq!(check(Path::new("/")), Err("is a directory".to_owned()));
    assert_eq!(check(Path::new("/dev/null")), Err("is no file that could be preloaded".to_owned()));
    assert!(check(Path::new("/nowhere/lib.so")).unwrap_err().starts_with("cannot be read: No such file"));
}
