use super::*;
use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

#[test]
fn names_are_unique_and_can_be_found() {
    let names: BTreeSet<&str> = EXPERIMENTS.iter().map(|experiment| experiment.name).collect();
    assert_eq!(names.len(), EXPERIMENTS.len());
    assert!(names.iter().all(|name| find(name).is_some_and(|found| found.name == *name)));
    assert!(find("no-such").is_none());
}

#[test]
fn the_document_of_experiments_lists_each() {
    let page = include_str!("../../../docs/experiments.md");
    for experiment in EXPERIMENTS {
        assert!(page.contains(&format!("`{}`", experiment.name)), "{} is not in docs/experiments.md", experiment.name);
    }
}

/// Without allocators.
fn quick(experiment: &Experiment, only: &[String], runs: Option<usize>) -> Result<Findings, String> {
    let ask = Ask {
        name: experiment.name,
        quick: true,
        allocators: &[],
        peers_asked: false,
        runs,
        only,
        tool: &|name| Err(format!("no {name} here")),
        command: &["craton".into()],
        stop: &AtomicBool::new(false),
        progress: &|_, _| {},
    };
    (experiment.run)(&ask)
}

#[test]
fn simulations_yield_a_document_and_pictures() {
    for (name, rows) in [("temeraire-fig10", 1601), ("temeraire-fig12", 4), ("size-classes", 4)] {
        let found = quick(find(name).expect("listed"), &[], None).expect("nothing is refused");
        let document: serde_json::Value = serde_json::from_str(&found.document).expect("JSON");
        assert_eq!(document["name"], name);
        assert!(document["rows"].as_array().is_some_and(|all| all.len() >= rows), "{name}");
        assert!(found.failed == 0 && !found.text.is_empty() && !found.pictures.is_empty());
        for (picture, svg) in &found.pictures {
            assert!(svg.contains("<svg") && !svg.contains("no data"), "{name}: {picture}");
        }
    }
}

#[test]
fn a_simulation_says_what_it_has_no_use_for_and_which_cases_it_has() {
    for name in ["temeraire-empirical", "temeraire-fig12", "pages-pair", "size-classes"] {
        let experiment = find(name).expect("listed");
        let runs = quick(experiment, &[], Some(3)).err().unwrap_or_default();
        assert!(runs.contains(name) && runs.contains("--runs"), "{runs}");
        let case = quick(experiment, &["no-such".to_owned()], None).err().unwrap_or_default();
        assert!(case.contains("no-such") && case.contains("choose of: "), "{case}");
    }
    let none = quick(find("temeraire-fig10").expect("listed"), &["x".to_owned()], None).err().unwrap_or_default();
    assert!(none.contains("--only"), "{none}");
}

#[test]
fn experiments_with_frames_yield_rows_ratios_and_pictures() {
    for (name, only, runs, ratio) in [
        ("llfree-fig9", vec!["repeat".to_owned()], Some(1), "repeat_pair_vs_list-locked"),
        ("llfree-tab1", vec![], None, "lines_vs_buddy"),
        ("llfree-refuse", vec![], Some(1), "refused-1_vs_craton-paper"),
    ] {
        let found = quick(find(name).expect("listed"), &only, runs).expect("nothing is refused");
        let document: serde_json::Value = serde_json::from_str(&found.document).expect("JSON");
        let rows = document["rows"].as_array().expect("rows");
        assert!(rows.len() >= 5 && rows.iter().all(|row| row["status"] == "ok"), "{name}: {}", found.text);
        assert!(document["ratios"][ratio].as_f64() > Some(0.0), "{name}: {}", document["ratios"]);
        assert!(found.text.contains("the paper's figures") && found.failed == 0);
        assert!(!found.pictures.is_empty() && found.pictures.iter().all(|(_, svg)| !svg.contains("no data")), "{name}");
    }
}

#[test]
fn experiments_with_frames_say_what_they_have_no_use_for() {
    let refused = |name: &str, only: &[&str], runs| {
        let only: Vec<String> = only.iter().map(|name| (*name).to_owned()).collect();
        quick(find(name).expect("listed"), &only, runs).err().unwrap_or_default()
    };
    assert!(refused("llfree-fig7", &["no-such"], None).contains("bulk, random, repeat"));
    assert!(refused("llfree-fig10", &["no-such"], None).contains("plain, mixed"));
    assert!(refused("llfree-fig10", &[], Some(2)).contains("--runs"));
    assert!(refused("llfree-tab1", &["bulk"], None).contains("--only"));
    assert!(refused("llfree-refuse", &["bulk"], None).contains("refused-0, refused-9"));
}

#[test]
fn experiments_with_objects_yield_rows_ratios_and_pictures() {
    for (name, rows, ratio) in [
        ("slab-frag", 9 * 4, "memory_vs_power-of-two"),
        ("slab-reap", 3 * 240, "memory_of_15s_vs_for_ever"),
        ("slab-colour", 3 * 2 * 3, "walk_l1_vs_power-of-two"),
    ] {
        let found = quick(find(name).expect("listed"), &[], None).expect("nothing is refused");
        let document: serde_json::Value = serde_json::from_str(&found.document).expect("JSON");
        let all = document["rows"].as_array().expect("rows");
        assert!(all.len() == rows && all.iter().all(|row| row["status"] == "ok"), "{name}: {}", found.text);
        assert!(document["ratios"][ratio].as_f64() > Some(0.0), "{name}: {}", document["ratios"]);
        assert!(!found.pictures.is_empty() && found.pictures.iter().all(|(_, svg)| !svg.contains("no data")), "{name}");
    }
}

#[test]
fn syncs_of_scattered_pages_yield_rows_and_a_picture() {
    let found = quick(find("pheap-sync").expect("listed"), &["sync-10".to_owned()], None).expect("nothing is refused");
    let document: serde_json::Value = serde_json::from_str(&found.document).expect("JSON");
    let rows = document["rows"].as_array().expect("rows");
    // LMDB and SQLite may not be installed.
    assert!(rows.len() >= 2 && rows.iter().all(|row| row["status"] == "ok"), "{}", found.text);
    let ours = rows.iter().find(|row| row["allocator"] == "craton-sync").expect("a row");
    assert!(ours["ms"].as_f64() > Some(0.0) && ours["pages"] == 10, "{ours}");
    assert!(!found.pictures.is_empty() && found.failed == 0);
}
