//! Flags of the shared library that no attribute can express.

fn main() {
    for flag in [
        "-Wl,-soname,libcraton.so",
        // Handlers of thread ends and forks, and the heap itself, outlive any `dlclose`.
        "-Wl,-z,nodelete",
        // No lazy binding: resolving a symbol inside malloc could call malloc.
        "-Wl,-z,now",
        "-Wl,-z,relro",
        // What we call `free` is ours, also where the process has another: opened late, we must know which is which.
        "-Wl,-Bsymbolic-functions",
    ] {
        println!("cargo:rustc-cdylib-link-arg={flag}");
    }
    println!("cargo:rerun-if-changed=build.rs");
}
