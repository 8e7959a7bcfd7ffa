mod golden;
mod library;
mod test;
mod tidy;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask tidy [--fix | --arrows [CRATE] | --unsafe]
       cargo xtask map
       cargo xtask golden [--fix]
       cargo xtask test [--units | --nightly]

tidy checks what the compiler does not: arrows between crates and modules,
statics that change, sizes of files and heads, reasons of unsafe files and memory
orderings, names in the linker script, words and paths that do not belong in the
tree; of documents: generated blocks, links, columns, phrases, and the commands,
files, functions and tests that they name.
  --fix      write the generated blocks
  --arrows   print the arrows between the modules of each crate, and the largest
             cycle; of one CRATE, the files from the bottom up with those they name
  --unsafe   print the ledger: each file with unsafe code, how many sites, and why

map prints the drawing of all crates that ARCHITECTURE.md has.

golden compares the machine code of malloc, free and operators new and delete in
the built library with the listing in tests/programs/golden.
  --fix   write the listing anew

test builds the tests and runs their programs side by side; its last line is
`N passed, N failed`.
  --units    unit tests alone
  --nightly  also tests that take minutes, and the long forms of the others

Exit status: 0 all is well, 1 something is not, 2 wrong usage.
Example: cargo xtask tidy --fix";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["-h" | "--help"] | ["tidy" | "map" | "golden" | "test", "-h" | "--help"] => {
            println!("{USAGE}");
            ExitCode::SUCCESS
        }
        ["tidy"] => tidy::run(false),
        ["tidy", "--fix"] => tidy::run(true),
        ["tidy", "--arrows"] => tidy::print(|files| Ok(tidy::modules::write(files))),
        ["tidy", "--arrows", name] => tidy::print(|files| tidy::modules::write_one(files, name)),
        ["tidy", "--unsafe"] => tidy::print(|files| Ok(tidy::ledger::write(files))),
        ["map"] => tidy::print(|_| tidy::map::block(tidy::root())),
        ["golden"] => golden::run(false),
        ["golden", "--fix"] => golden::run(true),
        ["test"] => test::run(test::Extent::All),
        ["test", "--units"] => test::run(test::Extent::Units),
        ["test", "--nightly"] => test::run(test::Extent::Nightly),
        other => {
            eprintln!("xtask: cannot do `{}`\n{USAGE}", other.join(" "));
            ExitCode::from(2)
        }
    }
}
