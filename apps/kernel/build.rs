//! Links the guest as a fixed image by `link.ld`, without C library and start files.

fn main() {
    let folder = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    for argument in ["-nostdlib", "-nostartfiles", "-static", "-no-pie", "-Wl,--build-id=none", "-Wl,--gc-sections"] {
        println!("cargo:rustc-link-arg-bins={argument}");
    }
    println!("cargo:rustc-link-arg-bins=-Wl,-T,{folder}/link.ld");
    println!("cargo:rerun-if-changed=link.ld");
    println!("cargo:rerun-if-changed=src/bare/boot.s");
}
