//! A plan is one call of cargo.

use super::job::Kind;
use std::path::Path;
use std::thread::available_parallelism;

/// Their tests wait for other programs.
pub const WAITING: [&str; 5] = ["programs", "cli", "lab", "papers", "kv"];

/// They start, measure, check and write.
pub(super) const PAPERS: [&str; 4] =
    ["the_list_has_one", "neither_the_program", "the_peak_of_fragbench", "a_client_that_checks_its_objects_finds"];

/// Seconds, before there is a last duration.
pub const SLOW: [(&str, f64); 6] = [
    ("all: programs (all)", 300.0),
    ("all: cli (all)", 150.0),
    ("all: pheap (all)", 100.0),
    ("all: kv (all)", 80.0),
    ("all: pages (all)", 70.0),
    ("all: frames (all)", 60.0),
];

/// So that no test fails by chance; nightly tries others.
const SEED: [&str; 2] = ["PROPTEST_RNG_SEED", "1"];

/// Cargo builds tests with unwinding; programs that unwind too share their libraries.
pub const UNWINDING: [&str; 2] = ["CARGO_PROFILE_DEV_PANIC", "unwind"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    Units,
    All,
    Nightly,
}

#[derive(Debug)]
pub struct Plan {
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
    pub runs: Vec<Run>,
}

#[derive(Debug, Default)]
pub struct Run {
    pub name: &'static str,
    pub package: Option<&'static str>,
    pub env: Vec<(String, String)>,
    pub filter: Vec<String>,
}

impl Kind {
    pub fn threads(self) -> usize {
        match self {
            Self::Computes => cores(),
            Self::Waits => 3 * cores(),
        }
    }

    pub fn at_once(self) -> usize {
        match self {
            Self::Computes => cores(),
            Self::Waits => 2,
        }
    }
}

fn cores() -> usize {
    available_parallelism().map_or(2, |n| n.get())
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| String::from(*text)).collect()
}

pub fn plans(extent: Extent, target: &Path) -> Vec<Plan> {
    let seed = if extent == Extent::Nightly { vec![] } else { vec![SEED.map(str::to_owned).into()] };
    let run = |name| Run { name, env: seed.clone(), ..Run::default() };
    let unwinding = vec![UNWINDING.map(str::to_owned).into()];
    if extent == Extent::Units {
        let args = owned(&["--workspace", "--lib", "--bins"]);
        return vec![Plan { args, env: unwinding, runs: vec![run("unit")] }];
    }
    let flags = std::env::var("RUSTFLAGS").unwrap_or_default();
    let loom_env = vec![
        ("RUSTFLAGS".to_owned(), format!("{flags} --cfg loom").trim().to_owned()),
        ("CARGO_TARGET_DIR".to_owned(), target.join("loom").to_string_lossy().into_owned()),
        ("CARGO_PROFILE_DEV_OPT_LEVEL".to_owned(), "2".to_owned()),
    ];
    let mut papers = owned(&["--manifest-path", "papers/Cargo.toml", "--target-dir", &target.to_string_lossy()]);
    let mut run_papers = run("papers");
    if extent == Extent::All {
        papers.extend(owned(&["--test", "lab"]));
        run_papers.filter = owned(&PAPERS);
    }
    let mut all = vec![run("all")];
    if extent == Extent::Nightly {
        let env = vec![("CRATON_TEST_OPTIONS".to_owned(), "page_heap=frames".to_owned())];
        all.push(Run { package: Some("programs"), env, ..run("on frames") });
    }
    vec![
        // Lints look at the examples.
        Plan { args: owned(&["--workspace", "--lib", "--bins", "--tests"]), env: unwinding.clone(), runs: all },
        // Its tests take longer than those of the papers.
        Plan { args: owned(&["--workspace", "--test", "loom*"]), env: loom_env, runs: vec![run("loom")] },
        Plan { args: papers, env: unwinding, runs: vec![run_papers] },
    ]
}

#[cfg(test)]
mod tests;
