fn main() {
    for flag in [
        "-Wl,-soname,libcraton.so",
        // Handlers of thread ends and forks outlive any `dlclose`.
        "-Wl,-z,nodelete",
        // Lazy binding inside malloc could call malloc.
        "-Wl,-z,now",
        "-Wl,-z,relro",
        // Our calls of `free` reach ours, also after a late dlopen.
        "-Wl,-Bsymbolic-functions",
    ] {
        println!("cargo:rustc-cdylib-link-arg={flag}");
    }
    // Other linkers may not accept the script.
    let target = ["CARGO_CFG_TARGET_ARCH", "CARGO_CFG_TARGET_OS", "CARGO_CFG_TARGET_ENV"];
    if target.map(|name| std::env::var(name).unwrap_or_default()) == ["x86_64", "linux", "gnu"] {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-T,{}/layout.ld", env!("CARGO_MANIFEST_DIR"));
        // A static program has no second `dlopen`.
        if std::env::var_os("CARGO_FEATURE_PORTABLE").is_none() {
            println!("cargo:rustc-cdylib-link-arg=-Wl,--defsym=dlopen=craton_dlopen");
            println!("cargo:rustc-cdylib-link-arg=-Wl,--version-script={}/dlopen.ver", env!("CARGO_MANIFEST_DIR"));
        }
    }
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=layout.ld");
}
