//! Other projects' test suites, on glibc and on Craton. A run ends with a line `tests T passed P`;
//! only commands with the prefix `$on` run on the allocator.

use super::{Ours, Part};
use crate::experiment::Ask;
use crate::experiment::sheet::{Column, Row, Show, json, table, with};
use craton_lab::micro::process::{Ended, Process};
use craton_lab::ratios::{BASE, OURS};
use craton_lab::scratch::Scratch;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(1800);
const COMMON: &str = include_str!("suites/common.sh");

pub struct Suite {
    pub name: &'static str,
    get: &'static str,
    /// Status 0: it is here.
    find: &'static str,
    run: &'static str,
    quick: bool,
}

macro_rules! suites {
    ($($name:literal $quick:literal get $get:literal find $find:literal run $run:literal)*) => {
        pub const SUITES: &[Suite] =
            &[$(Suite { name: $name, get: $get, find: $find, run: $run, quick: $quick }),*];
    };
}

// Name, whether quick, scripts with the functions of `common.sh`.
suites! {
    "cpython" false get "apt-get install libpython3.11-testsuite, or that of your version" find "has_module test.test_dict"
        run "cpython | of_unittest"
    "stress-ng" false get "apt-get install stress-ng" find "command -v stress-ng"
        run "stressors | of_prove"
    "numpy" false get "pip install numpy pytest hypothesis meson ninja" find "has_module numpy && has_module pytest && has_module hypothesis && command -v meson"
        run "$on \"$interpreter\" -m pytest -q -p no:cacheprovider --pyargs numpy 2>&1 | of_pytest"
    "bitarray" false get "pip install bitarray" find "has_module bitarray.test_bitarray"
        run "$on \"$interpreter\" -m unittest bitarray.test_bitarray bitarray.test_util 2>&1 | of_unittest"
    "simplejson" true get "pip install simplejson" find "has_module simplejson.tests"
        run "$on \"$interpreter\" -c 'from simplejson.tests import main; main()' 2>&1 | of_unittest"
    "regex" true get "pip install regex" find "has_module regex.tests.test_regex"
        run "$on \"$interpreter\" -m unittest regex.tests.test_regex 2>&1 | of_unittest"
    "greenlet" false get "pip install greenlet objgraph psutil" find "has_module greenlet.tests && has_module objgraph"
        run "$on \"$interpreter\" -m unittest discover greenlet.tests 2>&1 | of_unittest"
    "networkx" false get "pip install networkx pytest" find "has_module networkx && has_module pytest"
        run "$on \"$interpreter\" -m pytest -q -p no:cacheprovider --pyargs networkx 2>&1 | of_pytest"
    "numexpr" false get "pip install numexpr" find "has_module numexpr"
        run "$on \"$interpreter\" -c 'import numexpr; numexpr.test()' 2>&1 | of_unittest"
    "num-bigint" false get "build the experiments once, where cargo has a network" find "crate num-bigint" run "crate_tests | of_cargo"
    "slab" false get "build the experiments once, where cargo has a network" find "crate slab" run "crate_tests | of_cargo"
    "thin-vec" false get "build the experiments once, where cargo has a network" find "crate thin-vec" run "crate_tests | of_cargo"
    "mimalloc" true get "git clone mimalloc into the folder that CRATON_SUITES names" find "clone mimalloc/test/test-stress.c"
        run "mimalloc_stress"
    "redis" false get "git clone redis into the folder that CRATON_SUITES names, and make" find "clone redis/src/redis-server && command -v tclsh"
        run "redis | of_redis"
    "perl" false get "unpack perl's sources into the folder that CRATON_SUITES names, and make" find "clone perl/t/TEST"
        run "perl_core | of_prove"
}

const COLUMNS: [Column; 5] = [
    ("", "name", Show::Text),
    ("tests", "tests", Show::Count),
    ("passed on glibc", "glibc", Show::Count),
    ("passed on Craton", "craton", Show::Count),
    ("", "note", Show::Text),
];

pub fn run(ask: &Ask<'_>, ours: &Ours) -> Result<Part, String> {
    let all = ask.wants("suites") && (!ask.quick || ask.only.iter().any(|only| only == "suites"));
    let wanted = |suite: &&Suite| {
        all || ask.quick && suite.quick && ask.wants("suites") || ask.only.iter().any(|only| only == suite.name)
    };
    let wanted: Vec<&Suite> = SUITES.iter().filter(wanted).collect();
    let mut rows = Vec::new();
    for (done, suite) in wanted.iter().enumerate() {
        if ask.stopped() {
            break;
        }
        let progress = |allocator: &str| ask.show(suite.name, allocator, 0, (done, wanted.len()));
        rows.push(of_suite(ask, ours, suite, &progress)?);
    }
    Ok((table(&COLUMNS, &rows), rows))
}

fn of_suite(ask: &Ask<'_>, ours: &Ours, suite: &Suite, progress: &dyn Fn(&str)) -> Result<Row, String> {
    let head = json!({ "part": "suites", "name": suite.name });
    let scratch = Scratch::new("a suite of tests")?;
    let script = |text: &str, on: &str| shell(ask, text, on, scratch.path());
    if script(suite.find, "env").is_none_or(|(is_well, _)| !is_well) {
        return Ok(with(head, &json!({ "note": format!("not here: {}", suite.get) }), "ok"));
    }
    let mut preload = vec!["env".to_owned()];
    preload.extend(
        ours.variables.iter().map(|(key, value)| format!("{}={}", key.to_string_lossy(), value.to_string_lossy())),
    );
    let mut passed = [(0, 0); 2];
    for (allocator, on, of) in [(BASE, "env", 0), (OURS, &*preload.join(" "), 1)] {
        progress(allocator);
        let Some((_, said)) = script(suite.run, on) else {
            return Ok(with(head, &json!({ "note": "stopped" }), "ok"));
        };
        passed[of] = tally(&said);
    }
    let [(tests, base), (_, craton)] = passed;
    let status = match craton {
        0 => "failed: no test passed".to_owned(),
        _ if craton < base => format!("failed: {} tests pass on {BASE} alone", base - craton),
        _ => "ok".to_owned(),
    };
    Ok(with(head, &json!({ "tests": tests, "glibc": base, "craton": craton, "note": "" }), &status))
}

/// Behind [`COMMON`]. `None`: the caller stops, or it cannot run.
fn shell(ask: &Ask<'_>, text: &str, on: &str, directory: &Path) -> Option<(bool, String)> {
    let command = ["bash", "-c", &format!("{COMMON}\n{text}")].map(OsString::from);
    let variables = [("on".into(), on.into()), ("LC_ALL".into(), "C".into())];
    let process = Process::start(&command, &variables, directory, "suite", LIMIT).ok()?;
    match process.finish(ask.stop).ok()? {
        Ended::Done(output) => Some((output.status.success(), output.stdout)),
        Ended::TimedOut => Some((false, String::new())),
        Ended::Stopped => None,
    }
}

/// Zeros without such a line.
fn tally(said: &str) -> (u64, u64) {
    let line = said.lines().rev().find_map(|line| line.strip_prefix("tests "));
    let numbers = line.and_then(|line| line.split_once(" passed "));
    numbers.and_then(|(tests, passed)| Some((tests.parse().ok()?, passed.parse().ok()?))).unwrap_or_default()
}

#[cfg(test)]
mod tests;
