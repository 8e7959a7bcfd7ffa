use super::*;
use std::collections::BTreeSet;
use std::fs;

/// A directory of its own with these files, removed when dropped.
struct Place(PathBuf);

impl Place {
    fn new(name: &str, files: &[&str]) -> Self {
        let path = std::env::temp_dir().join(format!("craton-peers-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        files.iter().for_each(|file| fs::write(path.join(file), "").unwrap());
        Self(path)
    }

    fn select(&self, list: &str) -> Result<Vec<Peer>, String> {
        select(Some(list), std::slice::from_ref(&self.0))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn names(peers: &[Peer]) -> Vec<&str> {
    peers.iter().map(|peer| peer.name.as_str()).collect()
}

#[test]
fn all_are_those_that_are_here_and_no_variants() {
    let place = Place::new("all", &["mimalloc3.so", "tcmalloc.so", "unknown.so"]);
    let built: Vec<Peer> =
        place.select("all").unwrap().into_iter().filter(|peer| !peer.name.starts_with("debian-")).collect();
    assert_eq!(names(&built), ["tcmalloc", "mimalloc3"]);
    assert_eq!(built[1].library, Some(place.0.join("mimalloc3.so")));
    assert_eq!(select(None, std::slice::from_ref(&place.0)), place.select("all"));
    assert_eq!(place.select("none"), Ok(Vec::new()));
}

#[test]
fn tcmalloc_gets_rseq_and_says_so() {
    let place = Place::new("rseq", &["tcmalloc.so"]);
    let peer = place.select("tcmalloc").unwrap().remove(0);
    assert!(peer.env[0].1.to_string_lossy().ends_with("glibc.pthread.rseq=0"), "{peer:?}");
    assert!(peer.note.unwrap().contains("GLIBC_TUNABLES=glibc.pthread.rseq=0"));
}

#[test]
fn names_are_found_and_variants_have_their_settings() {
    let place = Place::new("names", &["mimalloc2.so", "jemalloc.so"]);
    let peers = place.select("mimalloc2, jemalloc+thp,glibc+thp,all").unwrap();
    assert_eq!(names(&peers)[..3], ["mimalloc2", "jemalloc+thp", "glibc+thp"], "all adds those that are not there yet");
    assert_eq!(peers[1].library, Some(place.0.join("jemalloc.so")));
    assert_eq!(peers[1].env, [("MALLOC_CONF".into(), "thp:always,metadata_thp:always".into())]);
    assert_eq!(peers[2].library, None);
    assert_eq!(names(&peers).iter().filter(|name| **name == "mimalloc2").count(), 1);
}

#[test]
fn any_library_can_be_named() {
    let place = Place::new("other", &["mine.so"]);
    let path = place.0.join("mine.so");
    let peers = place.select(&format!("mine={}", path.display())).unwrap();
    assert_eq!(peers, [Peer { name: "mine".into(), library: Some(path), env: vec![], note: None }]);
}

#[test]
fn errors_say_what_to_do() {
    let place = Place::new("errors", &["mimalloc2.so"]);
    for (list, part) in [
        ("nothing", "there are: tcmalloc, mimalloc3"),
        ("", "there is no such peer"),
        ("mimalloc3", "make peers"),
        ("craton", "takes part in every comparison"),
        ("mimalloc2,mimalloc2", "twice"),
        ("x=/nonexistent/x.so", "cannot read it"),
        ("x=/", "no file"),
        ("=/x.so", "NAME=PATH"),
        ("glibc=/x.so", "not taken"),
    ] {
        let why = place.select(list).unwrap_err();
        assert!(why.contains(part), "{list}: {why}");
    }
}

#[test]
fn known_names_are_unique_and_variants_name_a_known_peer() {
    let all: BTreeSet<&str> = KNOWN.iter().map(|known| known.name).chain(ALWAYS).collect();
    assert_eq!(all.len(), KNOWN.len() + ALWAYS.len());
    for known in KNOWN.iter().filter(|known| known.is_variant()) {
        assert!(all.contains(known.name.split_once('+').unwrap().0), "{}", known.name);
        assert!(known.sets.is_some());
    }
}

#[test]
fn directories_lie_around_the_program() {
    let found = directories(Path::new("/opt/bin/craton"));
    assert!(found.ends_with(&["/opt/bin/peers".into(), "/opt/bin/../lib/craton/peers".into()]), "{found:?}");
}
