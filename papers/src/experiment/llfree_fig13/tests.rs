use super::super::sheet::json;
use super::*;

#[test]
fn the_largest_part_of_each_guest_comes_first() {
    let line = |order: u64, allocator: &str, part: &str, instructions: u64| json!({"step": "parts", "order": order, "allocator": allocator, "part": part, "instructions": instructions});
    let lines = vec![
        line(9, "buddy", "rest", 7),
        line(0, "craton", "page allocator", 1),
        json!({"step": "done"}),
        line(0, "craton", "clearing pages", 5),
        line(0, "buddy", "rest", 2),
    ];
    let found = rows(lines);
    let of = |row: &Row| (row.int("order"), row.word("allocator").to_owned(), row.int("instructions"));
    let expected = [(0, "buddy", 2), (0, "craton", 5), (0, "craton", 1), (9, "buddy", 7)];
    assert_eq!(found.iter().map(of).collect::<Vec<_>>(), expected.map(|(order, who, n)| (order, who.to_owned(), n)));
}
