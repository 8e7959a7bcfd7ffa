use craton_papers::experiment::{Ask, find};
use std::process::Command;
use std::sync::atomic::AtomicBool;

const PROGRAM: &str = env!("CARGO_BIN_EXE_craton-crash");

#[test]
fn killed_processes_lose_no_more_than_what_was_under_way() {
    let ask = Ask {
        name: "llfree-crash",
        quick: true,
        allocators: &[],
        peers_asked: false,
        runs: Some(12),
        only: &[],
        tool: &|_| Ok(PROGRAM.into()),
        command: &["craton".into()],
        stop: &AtomicBool::new(false),
        progress: &|_, _| {},
    };
    let found = (find("llfree-crash").expect("listed").run)(&ask).expect("a place for files");
    assert_eq!(found.failed, 0, "{}", found.text);
    let document: serde_json::Value = serde_json::from_str(&found.document).expect("JSON");
    let rows = document["rows"].as_array().expect("rows");
    let kills: Vec<_> = rows.iter().filter(|row| row["workload"] == "kill").collect();
    assert_eq!(kills.len(), 12);
    let number = |row: &serde_json::Value, name: &str| row[name].as_u64().expect("a number");
    assert!(kills.iter().all(|row| number(row, "requests_losing") <= number(row, "threads")), "{}", found.text);
    // Some lived for long enough.
    assert!(kills.iter().map(|row| number(row, "operations")).sum::<u64>() > 0, "{}", found.text);
    assert!(document["ratios"]["open_closed_vs_crashed"].as_f64() > Some(0.0));
    assert!(
        found.text.contains("the paper's figures") && found.pictures.iter().all(|(_, svg)| !svg.contains("no data"))
    );
}

#[test]
fn a_zone_that_is_not_there_is_exit_status_1_and_wrong_usage_2() {
    let of = |args: &[&str]| Command::new(PROGRAM).args(args).output().expect("it starts");
    let none = of(&["/no/such", "4096", "1", "0", "closed"]);
    assert_eq!(none.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&none.stderr).contains("/no/such/zone"));
    assert_eq!(of(&["x"]).status.code(), Some(2));
}
