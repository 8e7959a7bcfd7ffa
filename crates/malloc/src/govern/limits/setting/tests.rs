use super::*;

#[test]
fn settings_are_kept_as_they_are_said() {
    let kept = Kept::auto();
    assert_eq!(kept.get(), Setting::Auto);
    for (text, setting) in [
        ("none", Setting::None),
        ("1", Setting::Bytes(1)),
        ("512M", Setting::Bytes(512 << 20)),
        ("1%", Setting::Percent(1)),
        ("100%", Setting::Percent(100)),
        ("auto", Setting::Auto),
    ] {
        assert_eq!(Setting::parse(text.as_bytes()), Some(setting), "{text}");
        kept.set(setting);
        assert_eq!(kept.get(), setting);
    }
    kept.set(Setting::Bytes(u64::MAX));
    assert!(matches!(kept.get(), Setting::Bytes(_)));
    for text in ["", "0", "0%", "101%", "%", "1K%", "-5", "None", "max"] {
        assert_eq!(Setting::parse(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn percentages_are_of_the_whole() {
    assert_eq!(Setting::Percent(80).bytes(|| Some(1000), None), Some(800));
    assert_eq!(Setting::Percent(80).bytes(|| None, Some(5)), None);
    assert_eq!(Setting::Percent(100).bytes(|| Some(u64::MAX), None), Some(u64::MAX));
    assert_eq!(Setting::Percent(1).bytes(|| Some(1), None), Some(1));
    assert_eq!(Setting::Auto.bytes(|| Some(9), Some(5)), Some(5));
    assert_eq!(Setting::None.bytes(|| Some(9), Some(5)), None);
    assert_eq!(Setting::Bytes(7).bytes(|| Some(9), Some(5)), Some(7));
}
