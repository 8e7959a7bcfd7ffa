use super::*;
use std::time::Instant;

fn empty() -> Sample {
    Sample::All { at: Instant::now(), all: Vec::new() }
}

#[test]
fn a_small_terminal_gets_a_sentence_that_fits() {
    for (width, height) in [(20, 5), (80, 10), (40, 40), (1, 1)] {
        let lines = lines(&empty(), None, &Order::default(), width, height);
        assert!(lines.len() <= height && lines.iter().all(|line| line.chars().count() <= width), "{lines:?}");
    }
    assert!(lines(&empty(), None, &Order::default(), 20, 5).join(" ").starts_with("The terminal has 20x5."));
    assert!(lines(&empty(), None, &Order::default(), 80, 24)[0].contains("0 processes"));
}

#[test]
fn a_process_of_another_namespace_has_its_number_here() {
    let mut page = vec![0; 4096];
    page[..8].copy_from_slice(b"\0CRATON1");
    (page[8], page[16]) = (1, 2);
    let page = craton_inspect::Published::parse(&page).unwrap();
    let sample = Sample::All { at: Instant::now(), all: vec![Process { pid: 4711, page, rss_bytes: 4096 }] };
    let lines = once(&sample);
    assert!(!lines[0].contains("quits"), "{lines:?}");
    assert!(lines.last().unwrap().starts_with("4711 "), "{lines:?}");
}

#[test]
fn rows_are_sorted_by_the_chosen_column() {
    let class =
        |object_bytes, live| ClassRow { object_bytes, live, memory_bytes: object_bytes * live, ..ClassRow::default() };
    let classes = [class(16, 100), class(32, 10), class(4096, 1)];
    let first = |order: &Order| class_lines(&classes, order)[1].split_whitespace().next().unwrap().to_owned();
    let mut order = Order::default();
    assert_eq!(first(&order), "4,096");
    order.next();
    assert_eq!(first(&order), "16");
    order.reverse();
    assert_eq!(first(&order), "4,096");
}

#[test]
fn the_ledger_has_two_columns_the_larger_rows_first() {
    let row = |name, bytes| Row { name, bytes, text: "" };
    let lines = ledger_lines(
        &[row("live_bytes", 10), row("huge_bytes", 0), row("free_page_bytes", 2048)],
        &[row("code_bytes", 5)],
    );
    let words: Vec<Vec<&str>> = lines.iter().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(words[1], ["free", "page", "2.0", "KiB", "code", "5", "B"]);
    assert_eq!(words[2], ["live", "10", "B"]);
}
