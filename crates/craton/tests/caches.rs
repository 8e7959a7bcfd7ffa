use craton::{Error, ObjectCache, ObjectCacheOptions};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

struct Counted {
    there: Arc<AtomicUsize>,
    uses: usize,
}

impl Counted {
    fn new(there: &Arc<AtomicUsize>) -> Self {
        there.fetch_add(1, Relaxed);
        Self { there: there.clone(), uses: 0 }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.there.fetch_sub(1, Relaxed);
    }
}

fn counted(name: &str) -> (Arc<AtomicUsize>, ObjectCache<Counted>) {
    let there = Arc::new(AtomicUsize::new(0));
    let theirs = there.clone();
    (there, ObjectCache::new(name, move || Counted::new(&theirs)).unwrap())
}

#[test]
fn objects_stay_constructed_and_are_dropped_with_their_cache() {
    let (there, cache) = counted("stay");
    for round in 0..10 {
        let mut out: Vec<_> = (0..500).map(|_| cache.alloc().unwrap()).collect();
        // On another CPU the thread does not find the first one's array.
        assert!(out.iter().all(|c| c.uses <= round), "as the last user left them");
        out.iter_mut().for_each(|c| c.uses += 1);
    }
    let stats = cache.stats();
    assert_eq!((stats.in_use, stats.name()), (0, "stay"));
    assert!((500..2500).contains(&stats.constructed), "{} for 5000 uses", stats.constructed);
    assert_eq!(there.load(Relaxed) as u64, stats.constructed);
    assert!(cache.reap().unwrap() > 0);
    assert_eq!(there.load(Relaxed), 0);
    drop(cache.alloc().unwrap());
    drop(cache);
    assert_eq!((there.load(Relaxed), Arc::strong_count(&there)), (0, 1), "objects and closure are gone");
}

#[test]
fn a_constructor_that_panics_or_fails_leaves_nothing_behind() {
    let calls = Arc::new(AtomicUsize::new(0));
    let theirs = calls.clone();
    let cache = ObjectCacheOptions::new()
        .name("panics")
        .create_fallible(move || match theirs.fetch_add(1, Relaxed) {
            n if n >= 200 => Some([n; 20]),
            n if n % 2 == 0 => panic!("as it is meant"),
            _ => None,
        })
        .unwrap();
    for i in 0..200 {
        match catch_unwind(AssertUnwindSafe(|| cache.alloc().map(|_| ()))) {
            Ok(result) => assert_eq!((i % 2, result), (1, Err(Error::Constructor))),
            Err(_) => assert_eq!(i % 2, 0),
        }
    }
    let stats = cache.stats();
    assert_eq!((stats.constructor_failures, stats.constructed, stats.in_use), (200, 0, 0));
    assert!(stats.slabs <= 1);
    assert_eq!(cache.alloc().unwrap()[0], 200, "and the cache goes on");
}

#[test]
fn a_constructor_that_asks_its_own_cache_is_told_so() {
    static CACHE: OnceLock<ObjectCache<Result<u8, Error>>> = OnceLock::new();
    let cache = CACHE.get_or_init(|| ObjectCache::new("own", || CACHE.get().unwrap().alloc().map(|_| 1)).unwrap());
    assert_eq!(*cache.alloc().unwrap(), Err(Error::Recursive));
}

#[test]
fn limits_names_and_layouts_are_looked_at() {
    let none = ObjectCacheOptions::new();
    assert_eq!(none.name("a name that is longer than it may be").create(|| 1).err(), Some(Error::CacheName));
    assert_eq!(none.name("with \"quotes\"").create(|| 1).err(), Some(Error::CacheName));
    assert_eq!(none.create_fallible(|| None::<[u8; (1 << 20) + 1]>).err(), Some(Error::Layout));
    let two = none.name("zwei – größer").limit_objects(2).create(|| 1u32).unwrap();
    let (a, b) = (two.alloc().unwrap(), two.alloc().unwrap());
    assert_eq!(two.alloc().err(), Some(Error::NoMemory));
    assert_eq!(two.alloc_timeout(Duration::from_millis(5)).err(), Some(Error::TimedOut));
    std::thread::scope(|s| {
        s.spawn(|| {
            std::thread::sleep(Duration::from_millis(20));
            drop(a);
        });
        assert_eq!(*two.alloc_timeout(Duration::from_secs(60)).unwrap(), 1);
    });
    drop(b);
    assert_eq!((two.stats().name(), two.prefill(3).err()), ("zwei – größer", Some(Error::NoMemory)));
    let nothing = ObjectCache::new("nothing", || ()).unwrap();
    *nothing.alloc().unwrap();
}

#[test]
fn what_was_forgotten_keeps_its_cache_and_its_value() {
    let (there, cache) = counted("forgotten");
    let kept: &mut Counted = cache.alloc().unwrap().leak();
    kept.uses = 7;
    let kept = std::ptr::from_ref(kept);
    drop(cache);
    // SAFETY: a leaked object stays.
    assert_eq!((unsafe { (*kept).uses }, there.load(Relaxed)), (7, 1));
}

#[test]
fn threads_share_a_cache_and_free_each_others_objects() {
    let (there, cache) = counted("threads");
    std::thread::scope(|s| {
        for _ in 0..8 {
            s.spawn(|| {
                for i in 0..200 {
                    let boxes: Vec<_> = (0..i % 40).map(|_| cache.alloc().unwrap()).collect();
                    s.spawn(move || boxes.into_iter().for_each(drop)).join().unwrap();
                }
            });
        }
    });
    assert_eq!(cache.stats().in_use, 0);
    drop(cache);
    assert_eq!(there.load(Relaxed), 0);
}
