use super::*;

fn of(line: &str) -> Result<Task, clap::Error> {
    Task::try_parse_from(["craton-crash"].into_iter().chain(line.split_whitespace()))
}

#[test]
fn arguments_are_read_and_wrong_ones_named() {
    let task = Task { directory: "d".into(), frames: 9, threads: 2, seed: 7, closed: true };
    assert_eq!(of("d 9 2 7 closed").unwrap(), task);
    for (line, part) in
        [("d 9 2 7", "<LEFT>"), ("d 0 2 7 closed", "0 is not in"), ("d 9 x 7 closed", "'x'"), ("d 9 2 7 so", "'so'")]
    {
        assert!(of(line).is_err_and(|why| why.to_string().contains(part) && why.exit_code() == 2), "{line}");
    }
}
