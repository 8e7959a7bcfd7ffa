use super::*;
use crate::testing::process;
use std::sync::Arc;

#[test]
fn the_first_sentence_has_the_sums_of_the_ledger() {
    let all = sentences(&process(7, "one"));
    assert_eq!(
        all[0],
        "20.0 MiB in memory, of which the heap holds 13.0 MiB: 5.0 MiB in objects, 6.0 MiB free, 2.0 MiB for Craton itself."
    );
    assert!(all[1].contains("2.0 MiB is whole pages") && all[1].contains("1.0 MiB lies between objects"), "{}", all[1]);
    assert_eq!(all.len(), 2);
}

#[test]
fn the_swap_is_named_if_it_is_used() {
    let mut process = process(7, "one");
    Arc::make_mut(&mut process.ledger).swap_bytes = 3 << 20;
    assert_eq!(sentences(&process)[2], "3.0 MiB more are in the swap.");
    assert!(warnings(&process).is_empty());
}
