//! `craton-papers` uses the library too.

fn main() -> std::process::ExitCode {
    craton_cli::main()
}
