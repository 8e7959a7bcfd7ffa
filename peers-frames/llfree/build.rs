//! The library needs nothing of the system's: a program that is linked statically can load it without a second C library.

fn main() {
    for argument in ["-nostdlib", "-nostartfiles", "-Wl,-z,defs"] {
        println!("cargo::rustc-cdylib-link-arg={argument}");
    }
    println!("cargo::rerun-if-changed=build.rs");
}
