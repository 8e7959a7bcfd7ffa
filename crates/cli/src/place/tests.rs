use super::*;

#[test]
fn craton_is_beside_the_labs_programs_in_a_build_and_in_bin_of_an_installation() {
    for (exe, own) in [
        ("/src/target/release/craton-papers", "/src/target/release/craton"),
        ("/usr/bin/craton", "/usr/bin/craton"),
        ("/usr/lib/craton/craton-papers", "/usr/bin/craton"),
    ] {
        assert_eq!(beside(Path::new(exe)), Path::new(own));
    }
}
