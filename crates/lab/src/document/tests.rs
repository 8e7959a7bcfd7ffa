use super::*;
use crate::measure::Status;

fn runs() -> Vec<Run> {
    let run = |allocator, wall_s| Run { wall_s, cpu_s: 1.0, ..Run::without(allocator, 0, Status::Ok) };
    vec![run("craton", 0.5), run("glibc", 2.0), Run::without("other", 0, Status::Signal(6))]
}

#[test]
fn the_document_has_the_stable_keys() {
    let command = [OsString::from("true"), OsString::from("x")];
    let document = Document::new("compare", "true", &command, &runs());
    let value = serde_json::to_value(&document).unwrap();
    let keys = |v: &serde_json::Value| v.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&value), ["command", "commit", "machine", "name", "ratios", "rows"]);
    assert_eq!(keys(&value["machine"]), ["cpu", "cpus", "kernel", "memory_bytes", "thp"]);
    assert_eq!(value["command"], serde_json::json!(["true", "x"]));
    assert_eq!(value["rows"][2]["status"], "signal 6");
    assert_eq!(value["rows"][0]["wall_s"], 0.5);
    assert_eq!(serde_json::from_value::<Document>(value).unwrap(), document);
}

#[test]
fn ratios_that_cannot_be_computed_are_left_out() {
    let ratios = ratios(&runs(), "craton", "glibc");
    assert_eq!(
        ratios.into_iter().collect::<Vec<_>>(),
        [("cpu_vs_glibc".to_owned(), 1.0), ("time_vs_glibc".to_owned(), 0.25)]
    );
}

#[test]
fn a_document_is_written_to_a_file() {
    let path = std::env::temp_dir().join(format!("craton-lab-document-{}", std::process::id()));
    Document::new("compare", "true", &[], &runs()).write(&path).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(text.starts_with("{\n") && text.ends_with("}\n"), "{text}");
    assert!(Document::new("compare", "true", &[], &[]).write(Path::new("/nonexistent/x.json")).is_err());
}
