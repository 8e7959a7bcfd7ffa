//! Page frames for a heap (P11).

use craton_base::{HugePageId, HugePages, PAGES_PER_HUGEPAGE, PageRange};
use craton_frames::{Config, Init, Metadata, Pages, Seat, Sizes};

pub type Zone = craton_frames::Zone<'static, Pages>;
pub type Frames = Seat<'static, 'static, Pages>;

fn array<T: Default>(len: usize) -> &'static [T] {
    Vec::leak((0..len).map(|_| T::default()).collect())
}

/// All offline.
pub fn zone(capacity: HugePages) -> &'static Zone {
    let frames = capacity.pages().0 as usize;
    let sizes = Sizes::of::<Pages>(frames, 1);
    let metadata = Metadata {
        rows: array(sizes.rows),
        children: array(sizes.children),
        trees: array(sizes.trees),
        index: array(sizes.index),
        locals: array(sizes.locals),
    };
    let config = Config { claims: false, ..Config::new(1) };
    Box::leak(Box::new(Zone::new(frames, metadata, Init::Offline, config).expect("arrays are long enough")))
}

pub fn seat(zone: &'static Zone) -> Frames {
    Seat::new(zone, 0).expect("the zone is for one processor")
}

pub fn check(zone: &Zone, out: &[PageRange], collapsing: &[HugePageId]) {
    zone.check().unwrap_or_else(|broken| panic!("{broken:?}"));
    let mut used = vec![false; zone.frames()];
    for span in out {
        used[span.first.0 as usize..span.end().0 as usize].fill(true);
    }
    for (id, pages) in used.chunks(PAGES_PER_HUGEPAGE as usize).enumerate() {
        let some = pages.contains(&true) && pages.contains(&false);
        let is_idle = !pages.contains(&true) && !collapsing.contains(&HugePageId(id as u32));
        for (at, used) in pages.iter().enumerate() {
            let page = id * PAGES_PER_HUGEPAGE as usize + at;
            let is_free = zone.is_free(page).expect("in the zone");
            assert!(!(is_free && *used), "P11: page {page} of a span is free for others");
            assert!(!some || is_free != *used, "P11: page {page} is free, and nobody can have it");
            assert!(!(is_idle && is_free), "P11: page {page} lies in a hugepage that is free as a whole");
        }
    }
}
