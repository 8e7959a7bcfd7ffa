extern crate std;
use super::*;
use crate::mapping;
use std::format;
use std::fs;
use std::vec::Vec;

fn with_page(test: impl FnOnce(*mut u8, &str, &[u8])) {
    let name = format!(
        "{}/craton-page-{}-{:?}",
        std::env::temp_dir().display(),
        std::process::id(),
        std::thread::current().id()
    );
    let path: Vec<u8> = name.bytes().chain([0]).collect();
    let at = mapping::map(BYTES, BYTES).unwrap();
    test(at as *mut u8, &name, &path);
    mapping::unmap(at, BYTES);
    let _ = fs::remove_file(&name);
}

#[test]
fn the_file_has_what_was_there_and_every_later_store() {
    // SAFETY: the test's page.
    with_page(|page, name, path| unsafe {
        page.write(7);
        share(page, path).unwrap();
        page.add(1).write(8);
        let shown = fs::read(name).unwrap();
        assert_eq!((shown.len(), &shown[..3]), (BYTES, &[7, 8, 0][..]));
        assert!(unshare(page));
        page.add(1).write(9);
        assert_eq!((page.read(), fs::read(name).unwrap()[1]), (7, 8));
    });
}

#[test]
fn a_file_that_exists_or_has_no_folder_changes_nothing() {
    // SAFETY: the test's page.
    with_page(|page, name, path| unsafe {
        page.write(7);
        fs::write(name, "mine").unwrap();
        assert_eq!(share(page, path), Err(libc::EEXIST));
        assert_eq!(share(page, b"/nonexistent/folder/file\0"), Err(libc::ENOENT));
        assert_eq!((page.read(), fs::read_to_string(name).unwrap().as_str()), (7, "mine"));
    });
}
