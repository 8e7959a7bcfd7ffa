use super::job;
use crate::test::job::Kind;
use crate::test::plan::Run;
use serde_json::json;

fn message(test: bool) -> serde_json::Value {
    json!({
        "reason": "compiler-artifact", "manifest_path": "/there/tests/programs/Cargo.toml", "profile": {"test": test},
        "executable": "/there/target/debug/deps/all-1", "target": {"kind": ["test"], "name": "all"},
    })
}

#[test]
fn a_message_about_a_test_program_becomes_a_job() {
    let run = Run {
        name: "frames",
        package: Some("programs"),
        env: vec![("A".into(), "b".into())],
        filter: vec!["own::".into()],
    };
    let found = job(&run, &message(true), true).expect("a job");
    assert_eq!(found.name, "frames: programs (all)");
    assert_eq!((found.kind, found.dir.to_str()), (Kind::Waits, Some("/there/tests/programs")));
    let threads = format!("--test-threads={}", found.threads);
    assert_eq!(found.args, ["own::", &threads, "--include-ignored"]);
    assert!(found.needs == ["CRATON_LIBRARY", "CRATON_PHEAP_LIBRARY"] && found.env.contains(&("A".into(), "b".into())));
}

#[test]
fn other_messages_are_no_jobs() {
    let finished = json!({"reason": "build-finished", "success": true});
    for message in [message(false), finished] {
        assert!(job(&Run::default(), &message, false).is_none(), "{message}");
    }
    let of_another_package = Run { package: Some("cli"), ..Run::default() };
    assert!(job(&of_another_package, &message(true), false).is_none());
}
