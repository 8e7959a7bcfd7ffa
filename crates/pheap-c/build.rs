fn main() {
    for flag in [
        "-Wl,-soname,libcraton_pheap.so",
        // The library has handlers of thread ends.
        "-Wl,-z,nodelete",
        "-Wl,-z,now",
        "-Wl,-z,relro",
    ] {
        println!("cargo:rustc-cdylib-link-arg={flag}");
    }
    println!("cargo:rerun-if-changed=build.rs");
}
