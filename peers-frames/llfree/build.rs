//! No system libraries: a static program can load this.

fn main() {
    for argument in ["-nostdlib", "-nostartfiles", "-Wl,-z,defs"] {
        println!("cargo::rustc-cdylib-link-arg={argument}");
    }
    println!("cargo::rerun-if-changed=build.rs");
}
