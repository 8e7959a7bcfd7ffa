use super::*;
use craton_inspect::{Call, Stack, Sum, Sums};

fn stack(names: &[&str], bytes: i64) -> Stack {
    let call = |name: &&str| Call { function: (*name).to_owned(), file: None, line: None, module: "/bin/x".to_owned() };
    let live = Sum { bytes, objects: bytes / 10 };
    Stack { calls: names.iter().map(call).collect(), sums: Sums { live, ..Sums::default() } }
}

#[test]
fn a_tree_begins_at_the_outermost_call_and_sums() {
    let stacks = Stacks(vec![stack(&["put", "main"], 300), stack(&["get", "main"], 100), stack(&[], 50)]);
    let root = tree(&stacks, Measure::Live);
    assert_eq!((root.v, root.o, root.c.len()), (450, 45, 2));
    let main = &root.c[0];
    assert_eq!((main.n.as_str(), main.p.as_str(), main.v), ("main", "/bin/x", 400));
    assert_eq!(main.c.iter().map(|node| (node.n.as_str(), node.v)).collect::<Vec<_>>(), [("put", 300), ("get", 100)]);
    assert_eq!(root.c[1].n, "unknown: no stack");
}

#[test]
fn narrow_parts_are_left_out_but_counted_above() {
    let mut all: Vec<Stack> = (0..9).map(|i| stack(&[&format!("small{i}"), "main"], 1)).collect();
    all.push(stack(&["big", "main"], 1_000_000));
    let root = tree(&Stacks(all), Measure::Live);
    assert_eq!((root.v, root.c[0].c.len()), (1_000_009, 1));
}

#[test]
fn of_a_difference_the_tree_has_what_came_and_the_list_also_what_went() {
    let stacks = Stacks(vec![stack(&["put", "main"], 300), stack(&["drop", "main"], -900)]);
    assert_eq!(tree(&stacks, Measure::Live).v, 300);
    let functions = functions(&stacks, Measure::Live);
    assert_eq!(
        functions.iter().map(|f| (f.name.as_str(), f.bytes)).collect::<Vec<_>>(),
        [("drop", -900), ("put", 300)]
    );
}
