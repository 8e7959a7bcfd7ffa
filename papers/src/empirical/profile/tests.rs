use super::*;

fn parse(text: &str) -> Result<Profile, String> {
    Profile::parse(text, "p.csv")
}

#[test]
fn rows_comments_and_blank_lines_are_read_in_any_order() {
    let profile = parse("# sizes of a server\n\n64, 10.5, 3e2 # the most\n  8,0,7\r\n").expect("a good profile");
    let rows = [Row { size: 8, rate: 0.0, live: 7.0 }, Row { size: 64, rate: 10.5, live: 300.0 }];
    assert_eq!(profile.rows(), rows);
}

#[test]
fn a_broken_row_is_named_with_line_value_and_what_is_expected() {
    for (row, value, expected) in [
        ("size, rate, live", "\"size\"", "whole number"),
        ("8.5, 1, 1", "\"8.5\"", "whole number"),
        ("-8, 1, 1", "\"-8\"", "from 1"),
        ("0, 1, 1", "\"0\"", "from 1"),
        ("1099511627777, 1, 1", "\"1099511627777\"", "1 TiB"),
        ("99999999999999999999999, 1, 1", "\"99999999999999999999999\"", "1 TiB"),
        ("8, one, 1", "allocation rate \"one\"", "give 0, or a number"),
        ("8, -1, 1", "allocation rate \"-1\"", "give 0, or a number"),
        ("8, NaN, 1", "allocation rate \"NaN\"", "give 0, or a number"),
        ("8, inf, 1", "allocation rate \"inf\"", "give 0, or a number"),
        ("8, 1, -0.5", "live objects \"-0.5\"", "give 0, or a number"),
        ("8, 1, nan", "live objects \"nan\"", "give 0, or a number"),
        ("8, 1e-300, 1", "allocation rate \"1e-300\"", "1e-9"),
        ("8, 1, 1e16", "live objects \"1e16\"", "1e15"),
        ("8, 1,", "live objects \"\"", "give 0, or a number"),
        ("8, 1, 0", "live objects 0 at allocation rate 1", "more than 0"),
        ("8, 1", "\"8, 1\": not three columns between commas but 2", "three"),
        ("8, 1, 1, 1", "but 4", "three"),
        ("16, 1, 1", "size 16", "already in line 2"),
    ] {
        let why = parse(&format!("# head\n16, 1, 1\n\n{row}\n24, 1, 1\n")).expect_err(row);
        for part in ["p.csv:4: ", value, expected] {
            assert!(why.contains(part), "{row}: {why} does not say {part}");
        }
    }
}

#[test]
fn a_profile_without_rows_or_without_births_is_refused() {
    for text in ["", "\n# nothing\n"] {
        let why = parse(text).expect_err("no rows");
        assert!(why.contains("p.csv: no rows") && why.contains("size in bytes"), "{why}");
    }
    let why = parse("8, 0, 5\n").expect_err("no births");
    assert!(why.contains("p.csv: every allocation rate is 0"), "{why}");
}

#[test]
fn a_byte_that_is_no_text_is_named_with_its_line() {
    let path = std::env::temp_dir().join(format!("craton-profile-{}.csv", std::process::id()));
    std::fs::write(&path, b"8, 1, 1\n16, 1, \xff\n").expect("the file can be written");
    let why = Profile::read(&path).expect_err("no text");
    std::fs::remove_file(&path).expect("the file is there");
    assert!(why.contains(".csv:2: ") && why.contains("UTF-8"), "{why}");
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let why = Profile::read(Path::new("/no/such/profile.csv")).expect_err("no such file");
    assert!(why.contains("/no/such/profile.csv"), "{why}");
}

#[test]
fn more_sizes_than_rows_have_numbers_are_refused() {
    let rows: String = (1..=MAX_ROWS + 1).map(|size| format!("{size},1,1\n")).collect();
    let why = parse(&rows).expect_err("too many rows");
    assert!(why.contains("p.csv:65537:") && why.contains("65536"), "{why}");
}

/// Not exceeded by the share `part` of births.
fn quantile(profile: &Profile, part: f64) -> u64 {
    let all: f64 = profile.rows().iter().map(|row| row.rate).sum();
    let mut sum = 0.0;
    let found = profile.rows().iter().find(|row| {
        sum += row.rate;
        sum >= part * all
    });
    found.expect("parts below 1").size
}

#[test]
fn the_built_in_profile_has_the_shape_that_is_promised() {
    let profile = Profile::built_in();
    let rows = profile.rows();
    assert!(rows.windows(2).all(|pair| pair[0].size < pair[1].size));
    assert!(rows.iter().all(|row| row.rate > 0.0 && row.live > 0.0));
    assert_eq!((rows[0].size, rows.last().map(|row| row.size)), (8, Some(1 << 20)));
    let quantiles = [0.5, 0.9, 0.99].map(|part| quantile(&profile, part));
    assert!(quantiles[0] == 56 && (250..=1024).contains(&quantiles[1]) && (2048..=8192).contains(&quantiles[2]));
    let lives = rows.iter().map(|row| row.live / row.rate);
    assert!(lives.fold((f64::MAX, 0.0), |(low, high), life| (life.min(low), life.max(high))) == (1.0 / 16.0, 16.0));
    let text: String = rows.iter().map(|row| format!("{}, {}, {}\n", row.size, row.rate, row.live)).collect();
    assert_eq!(parse(&text).as_ref(), Ok(&profile));
}
