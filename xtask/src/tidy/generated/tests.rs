use super::*;

fn empty_pages() -> Vec<File> {
    let mut pages: Vec<(&str, String)> = Vec::new();
    for b in &BLOCKS {
        let (begin, end) = b.marks();
        match pages.iter_mut().find(|(name, _)| *name == b.page) {
            Some((_, page)) => *page += &format!("{begin}{end}\nbetween\n"),
            None => pages.push((b.page, format!("before\n{begin}old\n{end}\nafter\n"))),
        }
    }
    let mut files: Vec<File> = pages.iter().map(|(name, page)| File::new(name, page)).collect();
    files.push(File::new(records::TABLE, "| a table |\n"));
    files
}

fn written() -> Vec<File> {
    let mut files: Vec<File> = pages(&empty_pages()).iter().map(|(name, page)| File::new(name, page)).collect();
    files.push(File::new(records::TABLE, "| a table |\n"));
    files
}

#[test]
fn every_block_is_written_between_its_marks_and_is_then_fresh() {
    assert_eq!(check(&empty_pages()).len(), BLOCKS.len());
    let files = written();
    assert_eq!(check(&files), []);
    for file in &files[..4] {
        assert!(file.text.starts_with("before\n") && !file.text.contains("old\n"), "{}", file.text);
    }
}

#[test]
fn a_line_typed_by_hand_is_a_complaint() {
    let mut files = written();
    let page = files.iter_mut().find(|file| file.path == "docs/options.md").unwrap();
    page.text = page.text.replacen("| `thp` | `auto`", "| `thp` | `maybe`", 1);
    let found = check(&files);
    assert!(found.len() == 1 && found[0].text.contains("its block options is stale"), "{found:?}");
}

#[test]
fn missing_marks_and_pages_are_complaints() {
    let mut files = written();
    files.retain(|file| file.path != HEADER);
    files.iter_mut().filter(|file| file.path == README).for_each(|file| file.text = String::new());
    let found = check(&files);
    assert_eq!(found.iter().filter(|c| c.path == HEADER && c.text.contains("is missing")).count(), 4);
    assert_eq!(found.iter().filter(|c| c.path == README && c.text.contains("marks")).count(), 1);
}

#[test]
fn every_key_and_counter_of_the_tables_is_in_the_documents() {
    let files = written();
    let page = |path: &str| files.iter().find(|file| file.path == path).unwrap().text.clone();
    for option in &OPTIONS {
        let row = format!("\n| `{}` | {} |", option.key, values(option));
        assert!(page("docs/options.md").contains(&row), "{row}");
        assert!(page(HEADER).contains(&format!("{}={}", option.key, option.form)), "{}", option.key);
    }
    for counter in
        [counters::PROCESS, counters::TEXTS, counters::CLASS, counters::HEAP, counters::KIT, counters::CACHE].concat()
    {
        assert!(page(STATISTICS).contains(&format!("\n| `{}` | ", counter.name)), "{}", counter.name);
    }
    for counter in [counters::PROCESS, counters::HEAP, counters::CACHE].concat() {
        assert!(page(HEADER).contains(&format!("\n    uint64_t {};", counter.name)), "{}", counter.name);
    }
}

#[test]
fn comments_of_the_header_are_wrapped() {
    let text = comment("    ", &"word ".repeat(60));
    assert!(text.lines().count() == 4 && text.lines().all(|line| line.len() <= COLUMNS), "{text}");
    assert!(text.starts_with("    /* word") && text.ends_with("word */\n"));
}
