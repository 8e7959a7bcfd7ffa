use super::*;
use crate::measure::Status;
use std::path::PathBuf;

fn document() -> Document {
    let run = |allocator, wall_s| Run { wall_s, user_s: 0.5, sys_s: 0.5, ..Run::without(allocator, 0, Status::Ok) };
    let runs = [run("craton", 0.5), run("glibc", 2.0), Run::without("other", 0, Status::Signal(6))];
    let rows = runs.iter().map(|run| Row::new("true", run)).collect();
    let peer = Allocator {
        env: vec![("A".into(), "b".into())],
        ..Allocator::preloaded("other", PathBuf::from("/lib/other.so"))
    };
    let command = [OsString::from("true"), OsString::from("x")];
    Document::new("compare", &command, &[Allocator::glibc(), peer], rows, &Ratios::of(&[&runs], "craton"))
}

#[test]
fn the_document_has_the_stable_keys() {
    let value = serde_json::to_value(document()).unwrap();
    let keys = |v: &serde_json::Value| v.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let all = ["allocators", "command", "commit", "intervals", "machine", "name", "notes", "ratios", "rows"];
    assert_eq!(keys(&value), all);
    assert_eq!(keys(&value["machine"]), ["cpu", "cpus", "kernel", "memory_bytes", "thp"]);
    assert_eq!(value["command"], serde_json::json!(["true", "x"]));
    assert_eq!(value["rows"][2]["status"], "signal 6");
    assert_eq!(value["rows"][0]["wall_s"], 0.5);
    assert_eq!(value["rows"][0]["cpu_s"], 1.0);
    assert_eq!(value["ratios"]["time_vs_glibc"], 0.25);
    assert_eq!(value["allocators"][1]["library"], "other.so");
    assert_eq!(value["allocators"][1]["variables"]["A"], "b");
    assert_eq!(serde_json::from_value::<Document>(value).unwrap(), document());
}

#[test]
fn its_text_is_indented_and_ends_its_line() {
    let text = document().text().unwrap();
    assert!(text.starts_with("{\n  \"name\": \"compare\"") && text.ends_with("}\n"), "{text}");
}
