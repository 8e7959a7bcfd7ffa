use super::*;
use roxmltree::Document;

fn figure(name: &str, unit: Unit, median: f64, ratio: Option<Estimate>) -> Figure {
    let runs = vec![median * 0.9, median, median * 1.1];
    let (min, max) = (runs[0], runs[2]);
    let round_ratios = ratio.map_or_else(Vec::new, |r| vec![r.value * 0.99, r.value, r.value * 1.01]);
    Figure { name: name.into(), unit, more_is_better: false, median, min, max, ratio, runs, round_ratios }
}

fn page() -> Page {
    let column = |name: &str, ratio: fn(f64, f64, f64) -> Option<Estimate>| Column {
        name: name.into(),
        note: format!("lib{name}.so"),
        figures: vec![
            figure("wall time", Unit::Seconds, 2.0, ratio(0.88, 0.85, 0.92)),
            figure("peak memory", Unit::Bytes, 9e7, ratio(1.01, 0.97, 1.04)),
            figure("steady memory", Unit::Bytes, 7e7, ratio(1.12, 1.104, 1.15)),
            figure("page faults", Unit::Count, 45_123.0, ratio(2.4, 2.3, 2.5)),
        ],
        rss: vec![(0.0, 1e6), (0.5, 8e7), (1.0, 6e7)],
    };
    Page {
        title: "sqlite3 <on> allocators".into(),
        measured: "sqlite3 ':memory:' < a&b.sql".into(),
        command: "craton compare -- sqlite3 ':memory:'".into(),
        commit: "0123456789abcdef".into(),
        machine: vec![("processor".into(), "a fast one".into())],
        subject: "craton".into(),
        base: "glibc".into(),
        rounds: 3,
        warmup: 1,
        method: vec!["Intervals are resampled.".into()],
        allocators: vec![
            column("craton", |value, low, high| Some(Estimate::between(value, low, high))),
            column("glibc", |_, _, _| None),
        ],
        failures: Vec::new(),
    }
}

fn words(html: &str) -> String {
    let body = html.split_once("<body>").expect("a body").1;
    let mut text = String::new();
    for part in body.split('<') {
        text.push_str(part.split_once('>').map_or(part, |(_, after)| after));
        text.push(' ');
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_verdict_claims_what_the_intervals_say_and_no_more() {
    let html = page().html();
    let verdict = "On Craton, compared with glibc: 12 % less wall time (95 % interval 8.0–15 %), 12 % more steady \
                   memory (95 % interval 10–15 %), 2.40 times the page faults (95 % interval 2.30–2.50), no clear \
                   difference in peak memory.";
    assert!(words(&html).contains(verdict), "{}", words(&html));
    let mut page = page();
    page.allocators[0].figures[0].ratio = Some(Estimate::between(1.0, 0.9, 1.1));
    assert!(words(&page.html()).contains("no clear difference in wall time or peak memory."));
}

#[test]
fn a_ratio_without_an_interval_is_never_clear() {
    let mut page = page();
    page.allocators[0].figures.truncate(1);
    page.allocators[0].figures[0].ratio = Some(Estimate::exact(0.5));
    let html = page.html();
    assert!(words(&html).contains("glibc: 0.50 times the wall time (too few rounds to be sure)."), "{}", words(&html));
    assert!(html.contains("<span class=\"same\">−50\u{a0}%</span>"));
    page.allocators[0].figures[0].ratio = Some(Estimate::between(0.5, f64::NAN, 0.6));
    assert!(words(&page.html()).contains("no clear difference in wall time"));
}

#[test]
fn a_page_needs_nothing_besides_itself() {
    let html = page().html();
    for outside in ["<script", "<link", "src=", "@import", "url(", "href=\"http"] {
        assert!(!html.contains(outside), "{outside}");
    }
    // The name of SVG's vocabulary, which nothing opens.
    assert_eq!(html.matches("http").count(), html.matches("http://www.w3.org/2000/svg").count());
}

#[test]
fn the_pictures_of_a_page_are_well_formed() {
    let html = page().html();
    let pictures: Vec<&str> =
        html.split("<svg").skip(1).filter_map(|part| part.split_once("</svg>")).map(|p| p.0).collect();
    assert_eq!(pictures.len(), 5);
    for picture in pictures {
        Document::parse(&format!("<svg{picture}</svg>")).expect("well-formed");
        assert!(!picture.contains("NaN") && !picture.contains("no data"));
    }
}

#[test]
fn each_chart_says_whether_more_is_better() {
    let mut page = page();
    for column in &mut page.allocators {
        let requests = Figure { more_is_better: true, ..figure("requests per second", Unit::Count, 1e4, None) };
        column.figures.extend([requests, figure("on hugepages", Unit::Bytes, 4e6, None)]);
    }
    let html = page.html();
    let of = |title: &str| {
        let chart = html.split("<svg").skip(1).find(|svg| svg.contains(&format!(">{title}<"))).expect(title);
        assert_ne!(chart.contains("less is better"), chart.contains("more is better"), "{title}");
        chart.contains("more is better")
    };
    for (title, more) in
        [("Memory", false), ("Memory on hugepages", true), ("Page faults", false), ("Requests per second", true)]
    {
        assert_eq!(of(title), more, "{title}");
    }
}

#[test]
fn text_does_not_become_tags() {
    let mut page = page();
    let evil = "<script>alert(\"1\")</script>&'\u{1b}[31m";
    page.title = evil.into();
    page.measured = evil.into();
    page.command = evil.into();
    page.commit = evil.into();
    page.machine = vec![(evil.into(), evil.into())];
    page.method = vec![evil.into()];
    page.allocators[0].name = evil.into();
    page.allocators[0].note = evil.into();
    page.allocators[0].figures[0].name = evil.into();
    page.failures = vec![Failure { allocator: evil.into(), round: 1, status: evil.into(), stderr: evil.into() }];
    let html = page.html();
    assert!(!html.contains("<script") && html.contains("&lt;script&gt;"));
}

#[test]
fn failures_are_counted_above_and_shown_below() {
    let mut page = page();
    let failure = |allocator: &str, round, stderr: &str| Failure {
        allocator: allocator.into(),
        round,
        status: "signal 11".into(),
        stderr: stderr.into(),
    };
    page.failures = vec![failure("mesh", 2, "first\nlast line"), failure("mesh", 0, " \n"), failure("scudo", 1, "x")];
    let text = words(&page.html());
    assert!(text.contains("3 runs failed: 2 of mesh, 1 of scudo."), "{text}");
    assert!(text.contains("mesh, round 2: signal 11") && text.contains("last line"), "{text}");
    assert!(text.contains("mesh, warm-up: signal 11 It wrote nothing to standard error."), "{text}");
}

#[test]
fn a_cell_that_is_pointed_at_shows_its_runs() {
    assert!(page().html().contains("<td title=\"single runs: 1.80 s, 2.00 s, 2.20 s\">"));
}

#[test]
fn a_page_without_figures_says_so() {
    let mut page = page();
    page.allocators.iter_mut().for_each(|column| column.figures.clear());
    page.allocators.iter_mut().for_each(|column| column.rss.clear());
    let text = words(&page.html());
    assert!(text.contains("there are no figures") && text.contains("Nothing can be said of Craton"), "{text}");
    let text = words(&Page { subject: "craton".into(), ..Page::default() }.html());
    assert!(text.contains("No run of craton is in this comparison."), "{text}");
}

#[test]
fn what_one_allocator_lacks_is_said_in_its_row() {
    let mut page = page();
    page.allocators[0].figures.remove(1);
    page.allocators[0].figures[0].median = f64::NAN;
    let html = page.html();
    assert_eq!(html.matches("<td class=\"quiet\">no figure</td>").count(), 1);
    assert!(!html.contains("NaN"));
}

#[test]
fn ratios_in_cells_are_percent_or_factors() {
    let cases = [
        (Estimate::between(0.88, 0.85, 0.92), "−12 % (−15 to −8.0)"),
        (Estimate::between(1.01, 0.97, 1.04), "+1.0 % (−3.0 to +4.0)"),
        (Estimate::between(2.4, 2.3, 2.5), "× 2.40 (2.30 to 2.50)"),
        (Estimate::between(0.05, 0.04, 0.06), "× 0.050 (0.040 to 0.060)"),
        (Estimate::exact(1.0), "0.0 %"),
    ];
    for (ratio, text) in cases {
        assert_eq!(verdict::short(&ratio).replace('\u{a0}', " "), text);
    }
}
