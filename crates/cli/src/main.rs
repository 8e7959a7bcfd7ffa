//! The program `craton`; all of it is in the library, from which `craton-papers` takes parts as well.

fn main() -> std::process::ExitCode {
    craton_cli::main()
}
