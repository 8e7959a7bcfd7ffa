use super::*;

#[test]
fn functions_of_the_c_library_are_found_as_the_dynamic_linker_finds_them() {
    for name in [c"getenv", c"strtol", c"dl_iterate_phdr"] {
        assert_eq!(function(name, 0), crate::symbol::find(name), "{name:?}");
        assert_eq!(function(name, crate::symbol::find(name)), 0, "{name:?} has no second definition");
    }
    assert_eq!(function(c"no_such_function_anywhere", 0), 0);
    assert_eq!(function(c"environ", 0), 0);
}

#[test]
fn the_objects_of_the_only_namespace_are_those_of_the_process() {
    let (mut listed, mut seen) = (0, 0);
    each(|object, _, _| {
        listed += usize::from(object.is_some());
        false
    });
    let mut getenv = 0;
    in_namespaces(|number, object| {
        assert_eq!(number, 0);
        seen += 1;
        getenv = getenv.max(object.function(c"getenv"));
        false
    });
    assert!(seen >= 2 && seen <= listed + 1, "{seen} of {listed}");
    assert_eq!(getenv, crate::symbol::find(c"getenv"));
}

#[test]
fn a_redirected_function_is_found_at_its_new_place() {
    extern "C" fn nothing() {}
    let at = nothing as *const () as usize;
    let name = c"hcreate";
    let old = function(name, 0);
    assert!(old != 0 && old != at);
    assert!(redirect(c"libc.so.6", &[(name, at)]) && redirect(c"libc.so.6", &[(name, at)]));
    assert_eq!((function(name, 0), crate::symbol::find(name)), (at, at));
    assert!(redirect(c"libc.so.6", &[(name, old)]));
    assert_eq!(crate::symbol::find(name), old);
    assert!(!redirect(c"no-such-object.so", &[(name, at)]));
}
