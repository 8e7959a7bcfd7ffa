use super::*;

fn request(from: From, what: What, batch: usize) -> Request {
    Request { from, what, batch, count: 300, repetitions: 2 }
}

#[test]
fn all_that_is_in_this_program_serves_pairs_and_batches() {
    for (name, from) in From::ALL.into_iter().filter(|(_, from)| *from != From::Cache) {
        for (bytes, batch) in [(8, 1), (300, 100), (4096, 7)] {
            let found =
                measure(&request(from, What::Bytes(bytes), batch)).unwrap_or_else(|why| panic!("{name}: {why}"));
            assert!(found.ns_min > 0.0 && found.ns_median >= found.ns_min, "{name}");
        }
    }
}

#[test]
fn every_type_is_constructed_and_destroyed() {
    for of in &types::TYPES {
        let found = measure(&request(From::Malloc, What::Object(of), 10)).unwrap();
        assert!(found.ns_median > 0.0 && found.malloc_from.contains("libc.so"), "{found:?}");
        assert!(types::find(of.name).is_some_and(|found| std::ptr::eq(found, of)) && !of.about.is_empty());
    }
}

#[test]
fn without_the_library_there_is_no_cache_and_stores_have_no_constructed_objects() {
    let why = measure(&request(From::Cache, What::Bytes(64), 1)).unwrap_err();
    assert!(why.contains("craton_cache_create") && why.contains("preload"), "{why}");
    let why = measure(&request(From::FastFits, What::Object(&types::TYPES[0]), 1)).unwrap_err();
    assert!(why.contains("fast-fits") && why.contains("mutex"), "{why}");
}
