use super::*;

fn of(line: &str) -> Result<Request, clap::Error> {
    Request::try_parse_from(["craton-real"].into_iter().chain(line.split_whitespace()))
}

#[test]
fn arguments_are_read() {
    let perl = |line, slow| matches!(of(line), Ok(Request::Prepare { name, quick, .. }) if name.name == "perl" && quick != slow);
    assert!(perl("prepare perl d", true) && perl("prepare perl d --quick", false));
    assert!(matches!(of("list"), Ok(Request::List)) && REAL.iter().all(|real| list().contains(real.about)));
    for (line, part) in [("", "list"), ("prepare perl", "<DIR>"), ("prepare no-such d", "'no-such'")] {
        assert!(of(line).is_err_and(|why| why.to_string().contains(part) && why.exit_code() == 2), "{line}");
    }
}
