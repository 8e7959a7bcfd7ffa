use super::*;
use std::boxed::Box;
use std::vec::Vec;

fn tables() -> Tables {
    Tables::new()
}

fn sample(address: usize, bytes: u64) -> Sample {
    Sample { address, size: 100, bytes, objects: bytes / 100, at_ns: 1_000, site: 0 }
}

fn soon() -> u64 {
    2_000
}

fn late() -> u64 {
    2_000 + SHORT_NS
}

fn read<R>(tables: &Tables, act: impl FnOnce(&mut All) -> R) -> R {
    tables.with(false, act).expect("there was a sample")
}

/// Live and peak bytes of the site with this frame.
fn at(tables: &Tables, frame: usize) -> (u64, u64) {
    read(tables, |all| {
        let site = all.sites.iter().find(|site| site.frames[0] == frame).unwrap();
        let peak = if site.epoch == all.header.epoch { site.peak } else { site.live };
        (site.live.bytes, peak.bytes)
    })
}

#[test]
fn a_site_keeps_what_lived_at_the_high_water_mark() {
    let tables = tables();
    tables.add(sample(0x1000, 500), &[7], 500);
    tables.add(sample(0x2000, 300), &[8], 500);
    tables.remove(0x1000, Some(late));
    tables.add(sample(0x3000, 100), &[8], 500);
    assert_eq!((at(&tables, 7), at(&tables, 8)), ((0, 500), (400, 300)));
    // A new mark, at another site.
    tables.add(sample(0x4000, 900), &[9], 500);
    assert_eq!((at(&tables, 7), at(&tables, 8), at(&tables, 9)), ((0, 0), (400, 400), (900, 900)));
    read(&tables, |all| {
        assert_eq!((all.header.peak.bytes, all.header.live.bytes, all.header.total.bytes), (1300, 1300, 1800));
    });
}

#[test]
fn a_sample_for_many_intervals_makes_no_mark_unless_it_lives_on() {
    let tables = tables();
    let peak = || read(&tables, |all| all.header.peak.bytes);
    tables.add(sample(0x1000, 500), &[7], 500);
    tables.add(sample(0x2000, 5000), &[8], 500);
    tables.remove(0x2000, Some(soon));
    assert_eq!((peak(), at(&tables, 8)), (500, (0, 0)));
    tables.add(sample(0x2000, 5000), &[8], 500);
    tables.add(sample(0x3000, 500), &[7], 500);
    assert_eq!((peak(), at(&tables, 7), at(&tables, 8)), (6000, (1000, 1000), (5000, 5000)));
}

#[test]
fn only_objects_freed_soon_count_as_short_lived() {
    let tables = tables();
    for (address, now) in [(0x1000, Some(soon as fn() -> u64)), (0x2000, Some(late)), (0x3000, None)] {
        tables.add(sample(address, 500), &[7], 1);
        tables.remove(address, now);
    }
    read(&tables, |all| {
        assert_eq!((all.header.short.bytes, all.sites[0].short.objects, all.sites[0].freed), (500, 5, 10));
        assert_eq!((all.header.live_samples, all.header.samples), (0, 3));
    });
}

#[test]
fn every_live_sample_is_found_whatever_was_removed_before() {
    let tables = tables();
    let mut live: Vec<usize> = Vec::new();
    let mut state = 1u64;
    for i in 1..20_000usize {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        if live.len() >= 4000 || (state >> 33).is_multiple_of(3) && !live.is_empty() {
            let address = live.swap_remove((state >> 40) as usize % live.len());
            assert!(tables.remove(address, None) && !tables.remove(address, None));
        } else {
            let address = i * 8192;
            assert_eq!(tables.add(sample(address, 1), &[i % 50], 1), live.len() + 1);
            live.push(address);
        }
    }
    assert!(live.len() > 2000);
    assert!(live.iter().all(|address| tables.may_have(*address)));
    assert!(live.iter().all(|address| tables.remove(*address, None)));
    assert!(!(1..20_000).any(|i| tables.may_have(i * 8192)), "each was counted once");
}

#[test]
fn without_room_samples_are_dropped_and_counted() {
    let tables = tables();
    for i in 1..=SITES + 5 {
        let kept = tables.add(sample(i * 8192, 1), &[i], 1) > 0;
        assert_eq!(kept, i <= SITES);
    }
    read(&tables, |all| assert_eq!((all.header.dropped, all.header.sites), (5, SITES as u64)));
    for i in SITES + 6..SITES + 6 + MOST {
        tables.add(sample(i * 8192, 1), &[1], 1);
    }
    read(&tables, |all| assert_eq!(all.header.live_samples as usize, MOST));
}

#[test]
fn a_file_begins_with_the_header_and_has_every_site() {
    let tables = tables();
    tables.add(sample(0x1000, 500), &[7, 8], 1);
    tables.add(sample(0x2000, 500), &[9], 1);
    let exact = Count { bytes: 70, objects: 7 };
    let (header, sites) = read(&tables, |all| (all.header_of_file(3, exact, 99), Box::<[u8]>::from(all.sites())));
    let word = |at: usize| u64::from_ne_bytes(header[at..at + 8].try_into().unwrap());
    assert!(header.starts_with(b"\0CRATONP"));
    assert_eq!(sites.len(), 2 * SITE_BYTES);
    let (live, known) = (offset_of!(Header, live), offset_of!(Header, exact));
    assert_eq!((word(offset_of!(Header, sites)), word(offset_of!(Header, maps_bytes))), (5, 99));
    assert_eq!((word(live), word(live + 8), word(known), word(known + 8)), (1070, 17, 70, 7));
    assert_eq!(word(offset_of!(Header, sequence)), 0, "no change is under way");
    let site = live_site(&[5, 6], exact);
    let word = |at: usize| u64::from_ne_bytes(site[at..at + 8].try_into().unwrap());
    let frames = offset_of!(Site, frames);
    assert_eq!((word(offset_of!(Site, frames_used)), word(frames), word(frames + 8)), (2, 5, 6));
    assert_eq!((word(offset_of!(Site, live)), word(offset_of!(Site, live) + 8)), (70, 7));
    read(&tables, |all| assert_eq!(all.header.sequence.load(Ordering::Relaxed), 4));
}
