extern crate std;
use super::*;
use crate::tests::Tree;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::string::{String, ToString};
use std::vec::Vec;

fn ended(path: &str) -> Vec<u8> {
    [path.as_bytes(), &[0]].concat()
}

fn names(folder: &str) -> Vec<String> {
    let mut all: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    all.sort();
    all
}

fn folder_of(path: &str) -> String {
    path.rsplit_once('/').unwrap().0.to_string()
}

#[test]
fn the_old_file_stays_until_the_new_one_is_whole() {
    let tree = Tree::new();
    let path = tree.path("file").to_str().unwrap().to_string();
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let ended = ended(&path);
    let new = Replacement::of(&ended).unwrap();
    new.file().write(b"half").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    assert_eq!(names(&folder_of(&path)).len(), 2);
    drop(new);
    assert_eq!((fs::read_to_string(&path).unwrap(), names(&folder_of(&path)).len()), ("old".into(), 1));
    let new = Replacement::of(&ended).unwrap();
    new.file().write(b"new").unwrap();
    new.commit().unwrap();
    assert_eq!((fs::read_to_string(&path).unwrap(), names(&folder_of(&path)).len()), ("new".into(), 1));
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o640);
}

#[test]
fn what_is_no_plain_file_of_ours_is_written_in_place() {
    let tree = Tree::new();
    let (path, target) = (tree.path("link"), tree.path("target"));
    fs::write(&target, "old").unwrap();
    std::os::unix::fs::symlink(&target, &path).unwrap();
    let ended = ended(path.to_str().unwrap());
    let new = Replacement::of(&ended).unwrap();
    new.file().write(b"new").unwrap();
    new.commit().unwrap();
    assert_eq!(fs::read_to_string(&target).unwrap(), "new");
    assert!(fs::symlink_metadata(&path).unwrap().is_symlink());
}

#[test]
fn a_folder_that_is_not_there_is_an_error() {
    assert_eq!(Replacement::of(&ended("/nonexistent/file")).err(), Some(libc::ENOENT));
}

#[test]
fn the_longest_paths_have_a_name_for_their_part() {
    let longest = [&[b'x'; PATH - 1][..], &[0]].concat();
    let name = part_of(&longest).unwrap();
    let text = &name[..name.iter().position(|byte| *byte == 0).unwrap()];
    assert!(text.ends_with(b".part") && text.starts_with(&longest[..PATH - 1]));
}
