use super::*;

#[test]
fn an_answer_names_settings_by_their_place_in_the_request() {
    let answer = b"0:no such key; ignored\x002:bad value (0: none); ignored\x003:of nothing that was asked for";
    let refused_one = |setting: &str, why: &str, waited| Refused { setting: setting.into(), why: why.into(), waited };
    assert_eq!(
        refused(answer, b"x=1\0y=2\0z=3", 1),
        [refused_one("x=1", "no such key", true), refused_one("z=3", "bad value (0: none)", false)]
    );
    assert_eq!(refused(b"", b"x=1", 0), []);
}
