use super::*;

#[test]
fn a_dynamic_program_and_a_script_have_no_obstacle() {
    let own = std::env::current_exe().unwrap();
    assert_eq!(obstacle(&own), None);
    assert_eq!(obstacle(Path::new("/dev/null")), None);
    assert_eq!(named_obstacle("/bin/sh".into()), None);
    assert!(why_not_served(own.as_os_str(), "it is not there").starts_with("likely"));
    assert!(why_not_served(OsStr::new("no-such-program-here"), "it is not there").starts_with("likely"));
}

fn elf(interpreter: &str) -> Vec<u8> {
    let text = [interpreter.as_bytes(), b"\0"].concat();
    let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
    bytes.resize(16, 0);
    for half in [3u16, 62] {
        bytes.extend(half.to_le_bytes());
    }
    bytes.extend(1u32.to_le_bytes());
    for word in [0u64, 64, 0] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend(0u32.to_le_bytes());
    for half in [64u16, 56, 1, 64, 0, 0] {
        bytes.extend(half.to_le_bytes());
    }
    // PT_INTERP, readable.
    for half in [3u32, 4] {
        bytes.extend(half.to_le_bytes());
    }
    for word in [120u64, 120, 120, text.len() as u64, text.len() as u64, 1] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend(text);
    bytes
}

#[test]
fn musl_is_found_in_programs_in_the_interpreters_of_scripts_and_as_the_linker_itself() {
    let place = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = place.path().join(name);
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    };
    let musl = file("musl", &elf("/lib/ld-musl-aarch64.so.1"));
    let glibc = file("glibc", &elf("/lib64/ld-linux-x86-64.so.2"));
    let found = |path: &Path| named_obstacle(path.to_owned());
    assert_eq!((found(&musl), found(&glibc)), (Some((musl.clone(), Obstacle::Musl)), None));
    let linker = file("ld-musl-x86_64.so.1", b"\x7fELF");
    assert_eq!(found(&linker), Some((linker.clone(), Obstacle::Musl)));
    for (line, has) in [
        (format!("#!{}\n", musl.display()), true),
        (format!("#! {} -e\nls\n", musl.display()), true),
        (format!("#!/usr/bin/env {}\n", musl.display()), true),
        (format!("#!{} {}\n", glibc.display(), musl.display()), false),
        (format!("# {}\n", musl.display()), false),
        ("#!".to_owned(), false),
        ("#!/no/such/interpreter\n".to_owned(), false),
    ] {
        let script = file("script", line.as_bytes());
        assert_eq!(found(&script), has.then(|| (musl.clone(), Obstacle::Musl)), "{line}");
    }
}
