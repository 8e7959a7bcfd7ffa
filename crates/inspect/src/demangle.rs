//! Names of C++ and Rust symbols as people write them.

/// As in the source, without the hash of Rust's; other names as they are.
pub fn demangled(name: &str) -> String {
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    let Ok(symbol) = cpp_demangle::Symbol::new(name) else { return name.to_owned() };
    symbol.demangle().unwrap_or_else(|_| name.to_owned())
}

#[cfg(test)]
mod tests;
