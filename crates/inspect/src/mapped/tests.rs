use super::*;
use std::os::unix::fs::symlink;
use std::process::Command;

#[test]
fn a_file_is_read_below_the_root_of_its_process() {
    let exe = std::env::current_exe().unwrap();
    let root = std::env::temp_dir().join(format!("craton-mapped-{}", std::process::id()));
    fs::create_dir_all(root.join("app")).unwrap();
    fs::write(root.join("app/program"), "inside").unwrap();
    symlink("/app/program", root.join("app/inner")).unwrap();
    symlink(&exe, root.join("app/outer")).unwrap();
    assert!(Command::new("mkfifo").arg(root.join("app/pipe")).status().unwrap().success());
    let inside = |path: &Path| read(Some(&root), path);
    for path in ["/app/program", "/app/inner"] {
        assert_eq!(inside(Path::new(path)).as_deref(), Some(&b"inside"[..]), "{path}");
    }
    // This system's file of that name is another.
    for path in [exe.to_str().unwrap(), "/app/outer", "/app/pipe", "/app"] {
        assert_eq!(inside(Path::new(path)), None, "{path}");
    }
    fs::remove_dir_all(&root).unwrap();
    let is_program = |bytes: Vec<u8>| bytes.starts_with(b"\x7fELF");
    assert!(inside(&exe).is_some_and(is_program), "the process has ended");
    assert!(read(Some(&root_of(std::process::id())), &exe).is_some_and(is_program));
    assert!(read(None, &exe).is_some_and(is_program));
}
