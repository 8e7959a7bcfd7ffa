use super::*;
use craton_lab::scratch::Scratch;

#[test]
fn a_folder_of_profiles_is_read_by_the_order_of_names() {
    let folder = Scratch::new("a test").unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let why = read(folder.path()).unwrap_err();
    assert!(why.contains(".csv") && why.contains(FOLDER), "{why}");
    write("b.csv", "16, 1, 1\n");
    write("a.csv", "32, 2, 2\n");
    write("notes.txt", "not a profile");
    let names: Vec<String> = read(folder.path()).unwrap().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["a", "b"]);
    write("c.csv", "16, fast, 1\n");
    assert!(read(folder.path()).unwrap_err().contains("c.csv:1"));
    assert!(read(&folder.path().join("none")).unwrap_err().contains("none"));
}
