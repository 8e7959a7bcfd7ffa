use super::*;

fn sample() -> Profile {
    let count = |n: u64| Count { bytes: 1000 * n, objects: n };
    let site = |stack: &[u64], n: u64| Site {
        stack: stack.to_vec(),
        live: count(n),
        peak: count(n),
        total: count(2 * n),
        short: count(1),
        captive: Count::default(),
    };
    let map = Map {
        start: 0x1000,
        end: 0x9000,
        readable: true,
        writable: false,
        executable: true,
        offset: 0x2000,
        path: "/bin/a program".to_owned(),
    };
    Profile {
        name: "some.profile".to_owned(),
        pid: 17,
        interval: 512 << 10,
        samples: 9,
        live_samples: 7,
        began_ns: 1,
        last_ns: 2,
        peak_ns: 3,
        short_ns: 4,
        live: count(7),
        peak: count(8),
        total: count(14),
        exact: count(2),
        sites: vec![site(&[0x1234, 0x2345, 0x3456], 5), site(&[0x1111], 2), site(&[], 1)],
        maps: vec![map],
        ..Profile::default()
    }
}

#[test]
fn a_written_profile_is_the_same_when_it_is_read() {
    let profile = sample();
    let read = Profile::parse("some.profile", &profile.bytes()).unwrap();
    assert_eq!((read.sites, read.maps), (profile.sites.clone(), profile.maps.clone()));
    let numbers = |p: &Profile| [p.pid, p.interval, p.samples, p.live_samples, p.began_ns, p.last_ns, p.peak_ns];
    let again = Profile::parse("some.profile", &profile.bytes()).unwrap();
    assert_eq!(numbers(&again), numbers(&profile));
    assert_eq!((again.live, again.peak, again.total), (profile.live, profile.peak, profile.total));
    assert_eq!(again.exact, profile.exact);
}

#[test]
fn a_profile_cut_at_any_byte_is_refused_by_a_sentence() {
    let bytes = sample().bytes();
    for len in 0..bytes.len() {
        let error = Profile::parse("cut", &bytes[..len]).map(|_| ()).unwrap_err();
        assert!(error.starts_with("cut: "), "{len}: {error}");
    }
    let mut longer = bytes.clone();
    longer.push(b'\n');
    assert!(Profile::parse("longer", &longer).is_err());
}

#[test]
fn another_version_is_named() {
    let mut bytes = sample().bytes();
    bytes[8] = 9;
    let error = Profile::parse("new", &bytes).map(|_| ()).unwrap_err();
    assert!(error.contains("version 9") && error.contains("version 1"), "{error}");
}
