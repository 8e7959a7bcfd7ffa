//! The experiments on persistent heaps, in the quick form.

use craton_papers::experiment::{Ask, Findings, find};
use serde_json::Value;
use std::process::Command;
use std::sync::atomic::AtomicBool;

const PROGRAM: &str = env!("CARGO_BIN_EXE_craton-heaps");

fn quick(name: &'static str, only: &[&str]) -> Result<Findings, String> {
    let only: Vec<String> = only.iter().map(|only| (*only).to_owned()).collect();
    let ask = Ask {
        name,
        quick: true,
        allocators: &[],
        peers_asked: false,
        runs: Some(1),
        only: &only,
        tool: &|_| Ok(PROGRAM.into()),
        command: &["craton".into()],
        stop: &AtomicBool::new(false),
        progress: &|_, _| {},
    };
    (find(name).expect("listed").run)(&ask)
}

/// All ok.
fn rows(name: &'static str, only: &[&str]) -> Vec<Value> {
    let found = quick(name, only).unwrap_or_else(|why| panic!("{name}: {why}"));
    assert_eq!(found.failed, 0, "{name}: {}", found.text);
    assert!(found.text.contains("the paper's figures"), "{name}: {}", found.text);
    assert!(!found.pictures.is_empty() && found.pictures.iter().all(|(_, svg)| !svg.contains("no data")), "{name}");
    let document: Value = serde_json::from_str(&found.document).expect("JSON");
    document["rows"].as_array().expect("rows").clone()
}

/// PMDK's library may not be installed.
fn of_craton<'a>(rows: &'a [Value], mode: &str) -> Vec<&'a Value> {
    let ours = |row: &&Value| row["allocator"].as_str().is_some_and(|name| name.starts_with("craton"));
    rows.iter().filter(ours).filter(|row| row["mode"] == mode).collect()
}

#[test]
fn each_load_has_a_speed_on_each_heap_and_in_each_mode() {
    let all = rows("nvalloc-fig9", &["threadtest", "publish"]);
    for mode in ["flush", "none", "modelled"] {
        let found = of_craton(&all, mode);
        assert!(!found.is_empty(), "{mode}");
        assert!(found.iter().all(|row| row["ns_per_op"].as_f64() > Some(0.0)), "{mode}: {found:?}");
    }
    let counted = of_craton(&all, "counted");
    // One fence, and a part of those for a ring.
    assert!(counted.iter().all(|row| row["fences_per_op"].as_f64() < Some(1.15)), "{counted:?}");
    assert!(rows("nvalloc-fig10", &["shbench"]).iter().any(|row| row["allocator"] == "craton-gc"));
    let large = rows("nvalloc-fig12", &["dbmstest"]);
    assert!(of_craton(&large, "flush").iter().any(|row| row["allocator"] == "craton-frames"), "{large:?}");
}

#[test]
fn space_is_told_with_morphing_and_without() {
    let all = rows("nvalloc-fig15", &["fragbench-w1"]);
    let found = of_craton(&all, "flush");
    assert!(found.iter().any(|row| row["allocator"] == "craton-log, static"));
    for row in found {
        let (peak, full) = (row["peak_per_live"].as_f64(), row["slabs_above_70"].as_f64());
        assert!(peak > Some(1.0) && full.is_some_and(|part| (0.0..=1.0).contains(&part)), "{row}");
    }
}

#[test]
fn a_list_is_found_again_whole() {
    let all = rows("nvalloc-fig18", &[]);
    let found = of_craton(&all, "flush");
    assert!(found.len() >= 3 && found.iter().all(|row| row["ms"].as_f64() > Some(0.0) && row["lost_nodes"] == 0.0));
}

#[test]
fn the_other_figures_have_rows_and_pictures() {
    let counts = rows("nvalloc-fig1a", &["threadtest", "prod-con"]);
    // Slots have one a line.
    assert!(of_craton(&counts, "counted").iter().all(|row| row["reflushes"].as_f64() < Some(0.01)), "{counts:?}");
    let first = rows("nvalloc-fig2", &[]);
    assert_eq!(of_craton(&first, "counted")[0]["flushes_at"].as_array().map(Vec::len), Some(1000));
    let steps = rows("nvalloc-fig11", &["threadtest"]);
    assert_eq!(of_craton(&steps, "modelled").len(), 3);
    let fences: Vec<_> = of_craton(&steps, "counted").iter().map(|row| row["fences_per_op"].as_f64()).collect();
    assert!(fences[0] >= Some(2.0) && fences[1] >= Some(2.0) && fences[2] < Some(1.5), "{fences:?}");
    let space = rows("nvalloc-fig13", &["one-large", "short-threads"]);
    assert!(of_craton(&space, "flush").iter().all(|row| row["grown_bytes"].as_f64() <= Some(2e6)), "{space:?}");
    for (name, least) in [("nvalloc-fig14", 6), ("nvalloc-fig16", 20), ("nvalloc-fig17", 10), ("nvalloc-fig19", 5)] {
        assert!(rows(name, &[]).len() >= least, "{name}");
    }
    assert!(!of_craton(&rows("nvalloc-fig20", &["shbench"]), "none").is_empty());
    assert!(!of_craton(&rows("nvalloc-fig21", &["larson-large"]), "none").is_empty());
}

#[test]
fn wrong_usage_and_places_that_are_not_there_are_named() {
    let of = |args: &[&str]| Command::new(PROGRAM).args(args).output().expect("it starts");
    let none = of(&["threadtest", "--heap", "craton-log", "--directory", "/no/such"]);
    assert_eq!(none.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&none.stderr).contains("/no/such/heap"));
    assert_eq!(of(&["no-such", "--heap", "craton-log", "--directory", "/"]).status.code(), Some(2));
    let other = of(&["fptree", "--heap", "nvalloc", "--directory", "/no/such"]);
    assert!(String::from_utf8_lossy(&other.stderr).contains("nvalloc cannot do fptree"));
    let unknown = quick("nvalloc-fig9", &["no-such"]).err().unwrap_or_default();
    assert!(unknown.contains("threadtest"), "{unknown}");
}
