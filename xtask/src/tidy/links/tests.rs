use super::*;

fn complaints(files: &[(&str, &str)]) -> Vec<String> {
    let files: Vec<File> = files.iter().map(|(path, text)| File::new(path, text)).collect();
    check(&files).into_iter().map(|c| c.to_string()).collect()
}

#[test]
fn links_lead_to_files_folders_and_headings() {
    let page =
        "[a](b.md) [up](../README.md#two-words---more) ![c](../results/) [out](https://x.y/z) [here](#top)\n# Top\n";
    let files = [
        ("docs/a.md", page),
        ("docs/b.md", ""),
        ("README.md", "## Two words, (`--more`)\n"),
        ("results/x.svg", ""),
        (CONTENTS, "[a](a.md) [b](b.md)\n"),
    ];
    assert_eq!(complaints(&files), [""; 0]);
}

#[test]
fn a_link_to_nothing_fails() {
    let files = [("README.md", "a\n[a](docs/b.md)\n[b](#none)\n`[c](d.md)`\n```\n[e](f.md)\n```\n")];
    let found = complaints(&files);
    assert!(
        found.len() == 2 && found[0].contains("README.md:2: the link `docs/b.md`: there is no docs/b.md"),
        "{found:?}"
    );
    assert!(found[1].contains("has no heading `#none`"), "{found:?}");
}

#[test]
fn a_page_outside_of_the_contents_fails() {
    let found = complaints(&[("docs/a.md", ""), (CONTENTS, "")]);
    assert!(found.len() == 1 && found[0].contains("not in the book"), "{found:?}");
}
