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
    // The compiler's own linker there amends its layout by such a script; elsewhere functions lie as they come.
    let target = ["CARGO_CFG_TARGET_ARCH", "CARGO_CFG_TARGET_OS", "CARGO_CFG_TARGET_ENV"];
    if target.map(|name| std::env::var(name).unwrap_or_default()) == ["x86_64", "linux", "gnu"] {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-T,{}/layout.ld", env!("CARGO_MANIFEST_DIR"));
        // `dlopen` in the shared library alone: a statically linked program has no second one for ours to call.
        if std::env::var_os("CARGO_FEATURE_PORTABLE").is_none() {
            println!("cargo:rustc-cdylib-link-arg=-Wl,--defsym=dlopen=craton_dlopen");
            println!("cargo:rustc-cdylib-link-arg=-Wl,--version-script={}/dlopen.ver", env!("CARGO_MANIFEST_DIR"));
        }
    }
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=layout.ld");
}
