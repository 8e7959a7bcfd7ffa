use super::*;
use std::fs;

struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("craton-cli-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("bin")).unwrap();
        Self(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        self.compile(&path, "int craton_segment;");
        path
    }

    fn compile(&self, library: &Path, source: &str) {
        let text = self.0.join("source.c");
        fs::write(&text, source).unwrap();
        let mut compiler = std::process::Command::new("gcc");
        compiler.args(["-shared", "-fPIC", "-nostdlib", "-o"]).args([library, &text]);
        assert!(compiler.status().unwrap().success());
    }

    fn own(&self) -> PathBuf {
        self.0.join("bin/craton")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_nearest_place_wins() {
    let place = Place::new("nearest");
    for name in ["lib/craton/libcraton.so", "lib/libcraton.so", "bin/libcraton.so"] {
        let path = place.file(name);
        assert_eq!(seek(None, &place.own()), Ok(path));
    }
}

#[test]
fn a_name_in_the_environment_is_the_only_place() {
    let place = Place::new("named");
    place.file("bin/libcraton.so");
    let named = place.file("other/libcraton.so");
    assert_eq!(seek(Some(named.as_os_str()), &place.own()), Ok(named));
    fs::write(place.file("text.so"), "INPUT(libcraton.so.1)").unwrap();
    for (wrong, why) in [
        ("absent", "cannot be read: No such file or directory"),
        ("other", "is a directory"),
        ("text.so", "is no shared library"),
    ] {
        let path = place.0.join(wrong);
        let Err(Failure::Usage(text)) = seek(Some(path.as_os_str()), &place.own()) else { panic!("{wrong}") };
        let start = format!("CRATON_LIBRARY names {}, which {why}", path.display());
        assert!(text.starts_with(&start) && text.contains("unset the variable"), "{text}");
    }
}

#[test]
fn a_library_that_only_uses_ours_is_not_ours() {
    let place = Place::new("uses");
    let path = place.0.join("uses.so");
    place.compile(&path, "extern int craton_segment; int f(void) { return craton_segment; }");
    let Err(Failure::Usage(text)) = seek(Some(path.as_os_str()), &place.own()) else { panic!("taken") };
    assert!(text.contains("which is a shared library, but not Craton's"), "{text}");
}

#[test]
fn a_file_that_is_no_library_is_not_passed_over() {
    let place = Place::new("broken");
    place.file("lib/libcraton.so");
    let broken = place.file("bin/libcraton.so");
    fs::write(&broken, "").unwrap();
    let Err(Failure::Failed(text)) = seek(None, &place.own()) else { panic!("refused") };
    assert!(text.starts_with(&format!("{} is no shared library", broken.display())), "{text}");
}

#[test]
fn the_error_names_every_place() {
    let place = Place::new("none");
    let text = seek(None, &place.own()).unwrap_err().to_string();
    for name in ["bin/libcraton.so", "lib/libcraton.so", "lib/craton/libcraton.so"] {
        assert!(text.contains(&*place.0.join(name).to_string_lossy()), "{text}");
    }
}

#[test]
fn a_path_that_would_be_cut_is_refused() {
    for path in ["/a b/libcraton.so", "/a:b/libcraton.so"] {
        let text = check(Path::new(path)).unwrap_err().to_string();
        assert!(text.contains(path) && text.contains("ln -s"), "{text}");
    }
    assert_eq!(check(Path::new("/a/libcraton.so")), Ok(()));
}

#[test]
fn what_is_preloaded_already_stays() {
    let path = Path::new("/l/libcraton.so");
    assert_eq!(preload(path, None), "/l/libcraton.so");
    assert_eq!(preload(path, Some(OsStr::new(""))), "/l/libcraton.so");
    assert_eq!(preload(path, Some(OsStr::new("/a.so b.so"))), "/l/libcraton.so:/a.so b.so");
    assert!(is_in(OsStr::new("a.so /l/libcraton.so")) && is_in(OsStr::new("libcraton.so:b.so")));
    assert!(!is_in(OsStr::new("/libcraton.so/a.so:mylibcraton.so")));
}

#[test]
fn the_list_without_the_library_keeps_the_others() {
    let without = |list: &str| without(Some(OsStr::new(list))).into_string().unwrap();
    assert_eq!(without("/x/libcraton.so:/a.so libcraton.so b.so"), "/a.so:b.so");
    assert_eq!((without("/x/libcraton.so"), super::without(None)), (String::new(), OsString::new()));
}
