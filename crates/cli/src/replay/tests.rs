use super::*;

fn of(options: &[&str]) -> Result<Policy, Failure> {
    policy(HeapName::Temeraire, &options.iter().map(|option| (*option).to_owned()).collect::<Vec<_>>())
}

#[test]
fn options_set_what_they_name_and_the_last_counts() {
    assert_eq!(of(&[]), Ok(Policy::default()));
    let all = of(&["release_rate=0", "regions=0", "fit=best", "fit=fullest", "thp=never"]);
    let fit = FitName::FullestFirst;
    let policy = Policy { release_rate: 0, regions: false, fit, backing: HugeBacking::NEVER, ..Policy::default() };
    assert_eq!(all, Ok(policy));
}

#[test]
fn what_is_wrong_with_an_option_is_said_with_what_there_is() {
    for (option, what) in [
        ("fit", "not of the form KEY=VALUE"),
        ("colour=red", "no such key"),
        ("fit=worst", "bad value"),
        ("regions=2", "bad value"),
        ("release_rate=-1", "bad value"),
        ("release_rate=99999999999999999999", "bad value"),
        ("thp=", "bad value"),
    ] {
        let text = format!("-o {option}: {what}; options: {OPTIONS}");
        assert_eq!(of(&[option]), Err(Failure::Usage(text)));
    }
    let text = "-o fit=best: --heap frames has no such option; options: release_rate=BYTES, thp=auto|always|never";
    assert_eq!(policy(HeapName::Frames, &["fit=best".to_owned()]), Err(Failure::Usage(text.to_owned())));
}

#[test]
fn heaps_are_known_by_name() {
    assert_eq!((heap("temeraire"), heap("frames")), (Ok(HeapName::Temeraire), Ok(HeapName::Frames)));
    let text = "--heap slab: no such heap; heaps: temeraire, frames";
    assert_eq!(heap("slab"), Err(Failure::Usage(text.to_owned())));
}
