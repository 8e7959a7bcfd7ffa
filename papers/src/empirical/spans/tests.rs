use super::*;

#[test]
fn a_size_says_length_and_density() {
    for pages in [1, 7, 256, 1000] {
        for density in [Density::Dense, Density::Sparse] {
            assert_eq!(span_of(size_for(Pages(pages), density)), (Pages(pages), density));
        }
    }
}

#[test]
fn large_objects_are_spans_and_small_ones_share_slabs() {
    let profile = Profile::parse("16, 1000, 10000\n1000000, 5, 50\n", "p").expect("good");
    let of_objects = spans(&profile, Lives::Object);
    assert_eq!(of_objects.rows()[0].live / of_objects.rows()[0].rate, 10.0);
    let even = spans(&profile, Lives::Even);
    let life = (160_000.0 + 50e6) / (16_000.0 + 5e6);
    assert!(even.rows().iter().all(|row| (row.live / row.rate - life).abs() < 1e-9), "{even:?}");
    let spans = spans(&profile, Lives::LastObject);
    let [slab, large] = spans.rows() else { panic!("{spans:?}") };
    assert_eq!(*large, Row { size: 123 << 13, rate: 5.0, live: 50.0 });
    let geometry = geometry(class_of(16));
    assert_eq!(span_of(slab.size), (geometry.pages, Density::Dense));
    assert_eq!(slab.live, 10_000.0 / f64::from(geometry.capacity));
    // On average 10 s: a slab outlives its objects.
    let life = slab.live / slab.rate;
    assert!(life > 20.0 && life < 100.0, "{life}");
}

#[test]
fn the_spans_of_the_built_in_profile_hold_its_objects() {
    let (objects, spans) = (Profile::built_in(), spans(&Profile::built_in(), Lives::Object));
    let bytes = |profile: &Profile| profile.rows().iter().map(|r| r.size as f64 * r.live).sum::<f64>();
    assert!(bytes(&spans) > bytes(&objects) && bytes(&spans) < 1.5 * bytes(&objects));
    assert!(spans.rows().is_sorted_by_key(|row| row.size));
}
