use super::*;

#[test]
fn a_dynamic_program_and_a_script_have_no_obstacle() {
    let own = std::env::current_exe().unwrap();
    assert_eq!(obstacle(&own), None);
    assert_eq!(obstacle(Path::new("/dev/null")), None);
    assert!(why_not_served(own.as_os_str(), "it is not there").starts_with("likely"));
    assert!(why_not_served(OsStr::new("no-such-program-here"), "it is not there").starts_with("likely"));
}
