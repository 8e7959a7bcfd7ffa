use super::*;

fn call(function: &str, file: Option<&str>) -> Call {
    Call { function: function.to_owned(), file: file.map(str::to_owned), line: Some(9), module: String::new() }
}

fn stack(calls: &[Call], bytes: i64) -> Stack {
    let sum = Sum { bytes, objects: bytes / 10 };
    Stack { calls: calls.to_vec(), sums: Sums { live: sum, ..Sums::default() } }
}

#[test]
fn the_owner_is_the_innermost_call_outside_of_the_language() {
    let calls = [
        call("operator new(unsigned long)", None),
        call("void std::vector<int>::grow()", Some("/usr/include/c++/14/bits/vector.tcc")),
        call("put(int)", Some("grow.cpp")),
        call("main", Some("grow.cpp")),
    ];
    assert_eq!(stack(&calls, 1).owner().unwrap().function, "put(int)");
    assert_eq!(stack(&calls[..2], 1).owner().unwrap().function, "operator new(unsigned long)");
}

#[test]
fn a_difference_has_what_came_and_what_went_but_not_what_stayed() {
    let (a, b, c) = (call("a", None), call("b", None), call("c", None));
    let old = Stacks(vec![stack(std::slice::from_ref(&a), 100), stack(std::slice::from_ref(&b), 50)]);
    let new = Stacks(vec![stack(&[a], 100), stack(&[c], 70)]);
    let since = new.since(&old);
    let bytes: Vec<(String, i64)> = since.0.iter().map(|s| (s.calls[0].function.clone(), s.sums.live.bytes)).collect();
    assert_eq!(bytes, [("b".to_owned(), -50), ("c".to_owned(), 70)]);
    assert_eq!(since.sum().live.bytes, 20);
    assert_eq!(since.folded(Measure::Live), "c 70\n");
}

#[test]
fn folded_lines_begin_with_the_outermost_call() {
    let stacks = Stacks(vec![stack(&[call("in;ner", None), call("main", None)], 30), stack(&[], 5)]);
    assert_eq!(stacks.folded(Measure::Live), "main;in,ner 30\nunknown 5\n");
}
