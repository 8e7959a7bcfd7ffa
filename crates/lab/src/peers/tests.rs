use super::*;

struct Place(PathBuf);

impl Place {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("craton-peers-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn with(self, files: &[&str]) -> Self {
        for file in files {
            let head: Vec<u8> = [b"\x7fELF\x02\x01".as_slice(), &[0; 10], &[3, 0, 62, 0]].concat();
            std::fs::write(self.0.join(file), head).unwrap();
        }
        self
    }

    fn select(&self, list: Option<&str>) -> Result<Vec<Peer>, String> {
        self.select_where(list, &|_| None)
    }

    fn select_where(
        &self,
        list: Option<&str>,
        variable: &dyn Fn(&str) -> Option<OsString>,
    ) -> Result<Vec<Peer>, String> {
        let here = [self.0.clone()];
        Places { built: &here, system: &here, craton: Path::new("libcraton.so"), variable }.select(list)
    }

    fn names(&self, list: Option<&str>) -> Vec<String> {
        self.select(list).unwrap().into_iter().map(|peer| peer.name).collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn variable(peer: &Peer, name: &str) -> Option<String> {
    let found = peer.env.iter().find(|(variable, _)| variable == name);
    found.map(|(_, value)| value.to_str().unwrap().to_owned())
}

#[test]
fn no_list_is_every_base_peer_that_is_there_and_no_variant() {
    let place = Place::new("all").with(&["mimalloc3.so", "tcmalloc.so", "libjemalloc.so.2", "other.so"]);
    let all = ["tcmalloc", "mimalloc3", "debian-jemalloc"];
    assert_eq!(place.names(None), all);
    assert_eq!(place.names(Some("all")), all);
    assert_eq!(Place::new("empty").names(None), [""; 0]);
}

#[test]
fn none_is_no_peer_and_stands_alone() {
    let place = Place::new("none").with(&["mimalloc3.so"]);
    assert_eq!(place.names(Some("none")), [""; 0]);
    assert!(place.select(Some("mimalloc3,none")).unwrap_err().contains("stands alone"));
}

#[test]
fn names_come_in_the_order_of_the_list_with_their_libraries() {
    let place = Place::new("order").with(&["mimalloc3.so", "snmalloc.so"]);
    let peers = place.select(Some("snmalloc, glibc+thp,mimalloc3+thp,mimalloc3")).unwrap();
    let names: Vec<&str> = peers.iter().map(|peer| peer.name.as_str()).collect();
    assert_eq!(names, ["snmalloc", "glibc+thp", "mimalloc3+thp", "mimalloc3"]);
    assert_eq!(peers[0].library, Some(place.0.join("snmalloc.so")));
    assert_eq!(peers[1].library, None);
    assert_eq!(peers[2].library, peers[3].library);
    assert_eq!(variable(&peers[2], "MIMALLOC_ALLOW_THP").as_deref(), Some("2"));
    assert!(peers[3].env.is_empty());
}

#[test]
fn variants_join_all_by_name() {
    let place = Place::new("join").with(&["jemalloc.so"]);
    assert_eq!(place.names(Some("all,jemalloc+thp")), ["jemalloc", "jemalloc+thp"]);
}

#[test]
fn an_unknown_name_is_an_error_that_lists_the_known_ones() {
    let error = Place::new("unknown").select(Some("mimaloc")).unwrap_err();
    assert!(error.contains("`mimaloc`"), "{error}");
    for known in known() {
        assert!(error.contains(known.name), "{error} without {}", known.name);
    }
    assert!(Place::new("blank").select(Some("")).unwrap_err().contains("`none`"));
}

#[test]
fn a_known_peer_that_is_missing_is_an_error_that_says_how_to_get_it() {
    let place = Place::new("missing");
    let error = place.select(Some("mimalloc2+large")).unwrap_err();
    assert!(error.contains("mimalloc2.so") && error.contains("make peers PEERS=mimalloc2"), "{error}");
    assert!(error.contains(place.0.to_str().unwrap()), "{error}");
    let error = place.select(Some("debian-tcmalloc")).unwrap_err();
    assert!(error.contains("libtcmalloc_minimal.so.4") && error.contains("libtcmalloc-minimal4"), "{error}");
    let nowhere = Places { built: &[], system: &[], craton: Path::new("libcraton.so"), variable: &|_| None }
        .select(Some("jemalloc"))
        .unwrap_err();
    assert!(nowhere.contains("CRATON_PEERS"), "{nowhere}");
}

#[test]
fn what_always_runs_is_no_peer() {
    for name in ["glibc", "craton"] {
        let error = Place::new("always").select(Some(name)).unwrap_err();
        assert!(error.contains(name) && error.contains("always runs"), "{error}");
    }
}

#[test]
fn a_name_twice_is_an_error() {
    let place = Place::new("twice").with(&["jemalloc.so", "own.so"]);
    let own = format!("mine={0},mine={0}", place.0.join("own.so").display());
    for list in ["jemalloc,jemalloc", "all,jemalloc", "all,all", &own] {
        assert!(place.select(Some(list)).unwrap_err().contains("twice"), "{list}");
    }
}

#[test]
fn any_library_is_a_peer_under_a_name_of_its_own() {
    let place = Place::new("own").with(&["own.so"]);
    let file = place.0.join("own.so");
    let peers = place.select(Some(&format!("mine-1={}", file.display()))).unwrap();
    assert_eq!(peers, [Peer { name: "mine-1".into(), library: Some(file.clone()), env: vec![], note: None }]);
    for (name, why) in
        [("jemalloc", "taken"), ("glibc", "taken"), ("all", "taken"), ("", "no name"), ("a b", "no name")]
    {
        let error = place.select(Some(&format!("{name}={}", file.display()))).unwrap_err();
        assert!(error.contains(why), "{name}: {error}");
    }
    assert!(place.select(Some("mine=")).unwrap_err().contains("no file"));
    assert!(place.select(Some("mine=/proc/self/status")).unwrap_err().contains("no shared library"));
    assert!(place.select(Some("mine=/nowhere/own.so")).unwrap_err().contains("/nowhere/own.so"));
}

#[test]
fn a_list_in_a_variable_keeps_the_users_other_entries() {
    let place = Place::new("merge").with(&["tcmalloc.so", "jemalloc.so"]);
    let tunables = |list: &str, now: &'static str| {
        let peers = place.select_where(Some(list), &|_| Some(now.into())).unwrap();
        (variable(&peers[0], "GLIBC_TUNABLES"), variable(&peers[0], "MALLOC_CONF"))
    };
    let rseq = "glibc.pthread.rseq=0";
    assert_eq!(tunables("tcmalloc", "").0.unwrap(), rseq);
    assert_eq!(tunables("tcmalloc", "glibc.malloc.check=1").0.unwrap(), format!("glibc.malloc.check=1:{rseq}"));
    assert_eq!(tunables("tcmalloc", "glibc.pthread.rseq=1:a=b").0.unwrap(), format!("a=b:{rseq}"));
    assert_eq!(tunables("jemalloc+thp", "narenas:2,thp:never").1.unwrap(), "narenas:2,thp:always");
    assert_eq!(tunables("glibc+thp", "").0.unwrap(), "glibc.malloc.hugetlb=1");
}

#[test]
fn a_variable_that_is_no_list_is_set_as_a_whole() {
    let place = Place::new("whole").with(&["tcmalloc.so"]);
    let peers = place.select_where(Some("tcmalloc,tcmalloc+thp"), &|_| Some("1".into())).unwrap();
    let setting = |peer| variable(peer, "TCMALLOC_DISABLE_MADV_HUGEPAGE").unwrap();
    assert_eq!((setting(&peers[0]), setting(&peers[1])), ("1".to_owned(), "0".to_owned()));
}

#[test]
fn the_first_directory_that_has_the_library_wins() {
    let (first, second) = (Place::new("first"), Place::new("second").with(&["jemalloc.so"]));
    let directories = [first.0.clone(), second.0.clone()];
    let places = Places { built: &directories, system: &[], craton: Path::new("libcraton.so"), variable: &|_| None };
    assert_eq!(places.select(Some("jemalloc")).unwrap()[0].library, Some(second.0.join("jemalloc.so")));
    let first = first.with(&["jemalloc.so"]);
    assert_eq!(places.select(Some("jemalloc")).unwrap()[0].library, Some(first.0.join("jemalloc.so")));
}

#[test]
fn directories_are_the_variables_then_beside_the_program_then_the_installed_one() {
    let program = Path::new("/usr/local/bin/craton");
    let own = ["/usr/local/bin/peers", "/usr/local/lib/craton/peers"].map(PathBuf::from);
    assert_eq!(directories_with(program, None), own);
    assert_eq!(directories_with(program, Some("".into())), own);
    let mut named = vec![PathBuf::from("/p")];
    named.extend(own);
    assert_eq!(directories_with(program, Some("/p".into())), named);
}

#[test]
fn every_known_name_is_there_once_and_a_variant_has_its_base() {
    for (i, peer) in KNOWN.iter().enumerate() {
        assert!(KNOWN[..i].iter().all(|other| other.name != peer.name), "{} twice", peer.name);
        assert!(!ALWAYS.contains(&peer.name));
        if peer.is_variant() {
            let is_base = |other: &&Known| !other.is_variant() && other.source == peer.source;
            let is_built = KNOWN.iter().any(|other| {
                !other.is_variant() && peer.name.starts_with(other.name) && matches!(peer.source, Source::Built(_))
            });
            let always = matches!(peer.source, Source::Glibc | Source::Craton);
            assert!(KNOWN.iter().any(|other| is_base(&other)) || always || is_built, "{} has no base", peer.name);
            assert!(is_built || !peer.settings.is_empty(), "{} changes nothing", peer.name);
        }
    }
}

#[test]
fn every_folder_of_the_peers_workspace_is_a_known_peer_and_the_other_way_round() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../peers");
    let entries = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path());
    let mut folders: Vec<String> = entries
        .filter(|path| path.join("names.ld").is_file())
        .map(|path| format!("{}.so", path.file_name().unwrap().to_str().unwrap()))
        .collect();
    folders.sort();
    let mut built: Vec<&str> = KNOWN
        .iter()
        .filter_map(|known| match known.source {
            Source::Built(file) => Some(file),
            _ => None,
        })
        .collect();
    built.sort_unstable();
    built.dedup();
    assert_eq!(folders, built);
}

#[test]
fn a_peer_is_an_allocator_to_measure() {
    let env = vec![("A".into(), "b".into())];
    let peer = Peer { name: "x".into(), library: Some("/x.so".into()), env: env.clone(), note: None };
    assert_eq!(Allocator::from(peer), Allocator { name: "x".into(), preload: Some("/x.so".into()), env });
}

#[test]
fn the_hardened_variant_is_the_library_and_an_option_beside_the_users_own() {
    let directories = [PathBuf::from("/nowhere")];
    let variable = |name: &str| (name == "CRATON_OPTIONS").then(|| "thp=never,hardened=0".into());
    let places = Places { built: &directories, system: &[], craton: Path::new("/x/libcraton.so"), variable: &variable };
    let peers = places.select(Some("craton+hardened")).unwrap();
    assert_eq!(peers[0].library, Some("/x/libcraton.so".into()));
    assert_eq!(peers[0].env, [("CRATON_OPTIONS".into(), "thp=never,hardened=1".into())]);
}
