use super::*;

fn complaints(path: &str, text: &str) -> usize {
    check(&[File::new(path, text)]).len()
}

#[test]
fn a_static_that_changes_fails() {
    for text in [
        "pub static COUNT: AtomicU64 = AtomicU64::new(0);\n",
        "static mut COUNT: u64 = 0;\n",
        "fn f() { static LAST: [Mutex<u8>; 2] = [const { Mutex::new(0) }; 2]; }\n",
        "thread_local! { static X: u8 = 0 }\n",
    ] {
        assert_eq!(complaints("crates/heap/src/gate.rs", text), 1, "{text}");
        assert_eq!(complaints("crates/malloc/src/front.rs", text), 1, "{text}");
    }
}

#[test]
fn tables_tests_declarations_and_other_crates_may_have_theirs() {
    for text in [
        "static TABLE: [u8; 4] = [0; 4];\n",
        "fn f(x: &'static AtomicU8) -> &'static Mutex<u8> { g(x) }\n",
        "#[cfg(test)]\nmod tests { static COUNT: AtomicU64 = AtomicU64::new(0); }\n",
        "extern \"C\" { static mut environ: *const u8; }\n",
    ] {
        assert_eq!(complaints("crates/heap/src/gate.rs", text), 0, "{text}");
    }
    let text = "static COUNT: AtomicU64 = AtomicU64::new(0);\n";
    for path in ["crates/malloc/src/statics.rs", "crates/os/src/thp.rs", "crates/heap/src/gate/tests.rs"] {
        assert_eq!(complaints(path, text), 0, "{path}");
    }
}
