//! The code is in the library, which `craton-papers` uses too.

fn main() -> std::process::ExitCode {
    craton_cli::main()
}
