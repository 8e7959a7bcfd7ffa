use super::*;
use craton_inspect::Measure;

fn count(bytes: u64) -> Count {
    Count { bytes, objects: 1 }
}

fn profile(samples: u64, sites: &[(u64, u64)]) -> Profile {
    let site = |(pc, bytes): &(u64, u64)| Site { stack: vec![*pc], live: count(*bytes), ..Site::default() };
    Profile { pid: 4194305, samples, sites: sites.iter().map(site).collect(), ..Profile::default() }
}

#[test]
fn a_profile_without_new_samples_is_no_moment() {
    let mut moments = Moments::default();
    moments.add(profile(1, &[(0x1000, 10)]));
    moments.add(profile(1, &[(0x1000, 10)]));
    assert_eq!(moments.times().len(), 1);
    moments.add(profile(2, &[(0x1000, 10), (0x2000, 5)]));
    assert_eq!((moments.times().len(), moments.stacks.len()), (2, 2));
}

#[test]
fn two_moments_differ_by_what_came() {
    let mut moments = Moments::default();
    moments.add(profile(1, &[(0x1000, 10)]));
    moments.add(profile(2, &[(0x1000, 4), (0x2000, 5)]));
    let (old, new) = (moments.all.all()[0].1.clone(), moments.at(u64::MAX).unwrap().1);
    let difference = moments.stacks(&new);
    let difference = difference.since(&moments.stacks(&old));
    let mut bytes: Vec<i64> = difference.0.iter().map(|stack| stack.sums.get(Measure::Live).bytes).collect();
    bytes.sort_unstable();
    assert_eq!(bytes, [-6, 5]);
    assert_eq!(moments.named.len(), 2);
}
