use super::*;
use craton_lab::scratch::Scratch;

#[test]
fn pages_of_zeros_lose_their_backing_and_others_keep_it() {
    let scratch = Scratch::in_memory("a test").expect("a folder");
    let path = scratch.path().join("file");
    let mut bytes = vec![0; 3 * PART + 2 * PAGE];
    (bytes[PAGE], bytes[2 * PART]) = (1, 1);
    std::fs::write(&path, &bytes).expect("a file");
    let before = backed(&path);
    punch_zeros(&path).expect("a file system with holes");
    assert_eq!((before, backed(&path)), (bytes.len() as u64, 2 * PAGE as u64));
    assert_eq!(backed(scratch.path()), backed(&path));
    assert_eq!(std::fs::read(&path).expect("the file"), bytes);
    assert_eq!(backed(&scratch.path().join("none")), 0);
}
