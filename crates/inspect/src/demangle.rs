//! Names of C++ and Rust symbols as people write them.

/// As in the source, without the hash of Rust's; other names as they are.
pub fn demangled(name: &str) -> String {
    // A C variable `i` would be the type int.
    if !name.starts_with("_Z") && !name.starts_with("_R") {
        return name.to_owned();
    }
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    let Ok(symbol) = cpp_demangle::Symbol::new(name) else { return name.to_owned() };
    let name = symbol.demangle().unwrap_or_else(|_| name.to_owned());
    let table = name.strip_prefix("{vtable(").and_then(|rest| rest.strip_suffix(")}"));
    table.map_or_else(|| name.clone(), |of| format!("vtable for {of}"))
}

#[cfg(test)]
mod tests;
