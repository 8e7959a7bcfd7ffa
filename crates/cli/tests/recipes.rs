//! The recipes of docs/compare.md, as they stand there.
//!
//! **What.** Each shell block with `--load` runs in an empty folder, with another port, one round
//! and a small load. With `CRATON_FULL=1` only the port changes. PostgreSQL refuses root, so root
//! runs them as an unprivileged user. A recipe whose programs are missing is left out.

use crate::common::{Place, library, port, said};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

const UNPRIVILEGED: u32 = 65534;
/// Debian keeps servers in the second.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/sbin";

struct Recipe {
    server: &'static str,
    /// Each with its Debian package.
    programs: &'static [(&'static str, &'static str)],
    port: &'static str,
    /// What makes it short.
    short: &'static [(&'static str, &'static str)],
}

const RECIPES: [Recipe; 5] = [
    Recipe {
        server: "redis-server",
        programs: &[("redis-server", "redis-server"), ("redis-benchmark", "redis-tools")],
        port: "7777",
        short: &[("-n 500000", "-n 20000")],
    },
    Recipe {
        server: "nginx",
        programs: &[("nginx", "nginx-light"), ("ab", "apache2-utils"), ("curl", "curl")],
        port: "8080",
        short: &[("-n 50000", "-n 1000")],
    },
    Recipe {
        server: "postgres",
        programs: &[("postgres", "postgresql"), ("pgbench", "postgresql")],
        port: "5433",
        short: &[("-T 10", "-T 1"), ("-s 10", "-s 1")],
    },
    Recipe {
        server: "node",
        programs: &[("node", "nodejs"), ("wrk", "wrk"), ("curl", "curl")],
        port: "3000",
        short: &[("-d 10", "-d 1")],
    },
    Recipe {
        server: "gunicorn",
        programs: &[("gunicorn", "gunicorn"), ("ab", "apache2-utils"), ("curl", "curl")],
        port: "8000",
        short: &[("-n 20000", "-n 200"), ("-w 4", "-w 2")],
    },
];

fn blocks() -> Vec<String> {
    let text = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/compare.md")).unwrap();
    let sh = text.split("\n```sh\n").skip(1).filter_map(|rest| rest.split_once("\n```\n"));
    sh.map(|(block, _)| block.to_owned()).filter(|block| block.contains("--load")).collect()
}

/// Replaces all; there must be one.
fn replace(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "no {from} in {text}");
    text.replace(from, to)
}

fn missing(recipe: &Recipe) -> Option<&'static str> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let folders: Vec<_> =
        versions.map(|version| version.path().join("bin")).chain(PATH.split(':').map(Into::into)).collect();
    let is_here = |program: &str| folders.iter().any(|folder| folder.join(program).is_file());
    recipe.programs.iter().find(|(program, _)| !is_here(program)).map(|(_, package)| *package)
}

fn run(server: &str) {
    let recipe = RECIPES.iter().find(|recipe| recipe.server == server).unwrap();
    if let Some(package) = missing(recipe) {
        return println!("skipped: {server}'s recipe needs the Debian package {package}");
    }
    let block = blocks().into_iter().find(|block| block.contains(&format!("-- {server} "))).unwrap();
    let mut script = replace(&block, recipe.port, &port());
    let full = std::env::var_os("CRATON_FULL").is_some();
    let mut options = "craton compare --peers none --json result.json".to_owned();
    if !full {
        options += " --runs 1";
        script = recipe.short.iter().fold(script, |script, (from, to)| replace(&script, from, to));
    }
    let script = replace(&script, "craton compare", &options);

    // The build's folder may be root's alone.
    let place = Place::new(server);
    let bin = place.path("bin");
    fs::create_dir(&bin).unwrap();
    for (from, name) in [(Path::new(env!("CARGO_BIN_EXE_craton")), "craton"), (library(), "libcraton.so")] {
        fs::copy(from, format!("{bin}/{name}")).unwrap();
        fs::set_permissions(format!("{bin}/{name}"), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let work = place.path("work");
    fs::create_dir(&work).unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-e", "-c", &script]).current_dir(&work).env("HOME", &work).env("PATH", format!("{bin}:{PATH}"));
    shell.env_remove("LD_PRELOAD").env_remove("CRATON_OPTIONS").env_remove("CRATON_PEERS");
    shell.env("CRATON_LIBRARY", format!("{bin}/libcraton.so"));
    // SAFETY: touches no memory.
    if unsafe { libc::geteuid() } == 0 {
        if chown(&place.0, Some(UNPRIVILEGED), Some(UNPRIVILEGED))
            .and(chown(&work, Some(UNPRIVILEGED), Some(UNPRIVILEGED)))
            .is_err()
        {
            return println!("skipped: files cannot be given to another user");
        }
        shell.uid(UNPRIVILEGED).gid(UNPRIVILEGED);
    }
    let said = said(&mut shell);
    assert_eq!(said.status, 0, "{}{}", said.out, said.err);
    assert!(said.out.contains("compared with glibc"), "{}", said.out);
    let document: Value = serde_json::from_str(&fs::read_to_string(format!("{work}/result.json")).unwrap()).unwrap();
    let rows = document["rows"].as_array().unwrap();
    assert_eq!(rows.len(), if full { 10 } else { 2 });
    for row in rows {
        assert_eq!(row["status"], "ok", "{row}");
        assert!(row["load"]["operations_per_s"].as_f64() > Some(1.0), "{row}");
        assert!(row["peak_rss_bytes"].as_u64() > Some(1 << 20), "{row}");
    }
}

#[test]
fn each_recipe_has_its_test() {
    let of =
        |recipe: &Recipe| blocks().iter().filter(|block| block.contains(&format!("-- {} ", recipe.server))).count();
    assert!(RECIPES.iter().all(|recipe| of(recipe) == 1));
    assert_eq!(blocks().len(), RECIPES.len());
}

#[test]
fn the_recipe_of_redis_runs() {
    run("redis-server");
}

#[test]
fn the_recipe_of_nginx_runs() {
    run("nginx");
}

#[test]
fn the_recipe_of_postgresql_runs() {
    run("postgres");
}

#[test]
fn the_recipe_of_node_runs() {
    run("node");
}

#[test]
fn the_recipe_of_gunicorn_runs() {
    run("gunicorn");
}
